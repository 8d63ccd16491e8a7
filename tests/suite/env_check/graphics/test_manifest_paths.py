"""Where manifests are looked for, and in which order, as the loaders do it."""

from pathlib import Path

import pytest

from suite.env_check.graphics import manifests as icd_manifests
from suite.env_check.graphics.manifests import ManifestsSeen
from tests.fixtures.stand_ins.denied_folders import deny


def names(seen: ManifestsSeen, root: Path) -> list[str]:
    """Paths below ``root`` of what the loader takes in, in order."""
    return [str(Path(each.path).relative_to(root)) for each in seen.manifests if not each.filtered_by]


def test_the_vulkan_search_path_in_its_order(tmp_path: Path) -> None:
    usual = ["me/.config", "etc/xdg", "etc", "me/.local/share", "usr/local/share", "usr/share"]
    for folder in (*usual, "conf", "data", "a", "b", "c"):
        (tmp_path / folder / "vulkan/icd.d").mkdir(parents=True)
        (tmp_path / folder / "vulkan/icd.d/x.json").write_text("{}")
    (tmp_path / "etc/vulkan/icd.d/readme.txt").write_text("no manifest")

    def search(**environ: str) -> list[str]:
        seen = icd_manifests.read_manifests("vulkan", environ, driver_version=None, root=tmp_path)
        return [name.removesuffix("/vulkan/icd.d/x.json") for name in names(seen, tmp_path)]

    assert search(HOME="/me") == usual
    assert search() == ["etc/xdg", "etc", "usr/local/share", "usr/share"]
    assert search(XDG_CONFIG_HOME="/conf", XDG_CONFIG_DIRS="/a:/b", XDG_DATA_HOME="/data", XDG_DATA_DIRS="/c") == [
        "conf", "a", "b", "etc", "data", "c",
    ]  # fmt: skip
    assert search(XDG_DATA_DIRS="") == search()  # set but empty is as unset here
    assert search(VK_ADD_DRIVER_FILES="/a/vulkan/icd.d", XDG_DATA_DIRS="/c")[0] == "a"
    only_b = {"VK_DRIVER_FILES": "/b/vulkan/icd.d/x.json"}
    assert search(**only_b, VK_ICD_FILENAMES="/a/vulkan/icd.d", VK_ADD_DRIVER_FILES="/c/vulkan/icd.d") == ["b"]
    assert search(VK_ICD_FILENAMES="/a/vulkan/icd.d:/b/vulkan/icd.d/x.json") == ["a", "b"]


def test_a_folder_that_may_not_be_entered_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("me/.config", "etc"):
        (tmp_path / folder / "vulkan/icd.d").mkdir(parents=True)
        (tmp_path / folder / "vulkan/icd.d/x.json").write_text("{}")
    deny(monkeypatch, tmp_path / "me")
    seen = icd_manifests.read_manifests("vulkan", {"HOME": "/me"}, driver_version=None, root=tmp_path)
    assert names(seen, tmp_path) == ["etc/vulkan/icd.d/x.json"]
    named = icd_manifests.read_manifests(
        "vulkan", {"VK_DRIVER_FILES": "/me/vulkan/icd.d/x.json"}, driver_version=None, root=tmp_path
    )
    assert [manifest.source for manifest in named.manifests] == ["VK_DRIVER_FILES"]


def test_the_egl_search_path_in_its_order(tmp_path: Path) -> None:
    etc, usr = "etc/glvnd/egl_vendor.d", "usr/share/glvnd/egl_vendor.d"
    for name in (f"{etc}/b.json", f"{etc}/a.json", f"{usr}/10.json", "own/c.json", "own/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")

    def search(**environ: str) -> list[str]:
        return names(icd_manifests.read_manifests("egl", environ, driver_version=None, root=tmp_path), tmp_path)

    assert [Path(name).name for name in search()] == ["a.json", "b.json", "10.json"]
    assert search(__EGL_VENDOR_LIBRARY_DIRS="/own") == ["own/c.json"]
    assert search(__EGL_VENDOR_LIBRARY_FILENAMES="/own/notes.txt", __EGL_VENDOR_LIBRARY_DIRS="/x") == ["own/notes.txt"]
    assert search(__EGL_VENDOR_LIBRARY_FILENAMES="", __EGL_VENDOR_LIBRARY_DIRS="/own") == []
