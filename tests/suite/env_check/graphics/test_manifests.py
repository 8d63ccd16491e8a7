"""Every fault of an EGL or Vulkan manifest, where manifests are looked for, and that the real loaders agree."""

import os
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from suite.env_check.check import Judgement
from suite.env_check.graphics import manifests
from suite.env_check.graphics.manifests import Kind, ManifestFacts, judge_manifests, read_manifests, usable
from suite.env_check.libraries import Library, read_search_path
from suite.env_check.probes.run import run_probe
from tests.fixtures.machines.debian_packages import loader_environ
from tests.fixtures.stand_ins.denied_folders import deny
from tests.fixtures.stand_ins.stub_drivers.build import (
    build,
    build_32_bit,
    truncate,
    write_manifest,
)

pytestmark = pytest.mark.usefixtures("graphics_packages")
DRIVER = "580.159.04"


DOCKER = {"container": "docker"}  # the variable that podman and systemd-nspawn set
FILE: Final[dict[Kind, str]] = {"vulkan": "VK_DRIVER_FILES", "egl": "__EGL_VENDOR_LIBRARY_FILENAMES"}
FOLDER: Final[dict[Kind, str]] = {"vulkan": "VK_DRIVER_FILES", "egl": "__EGL_VENDOR_LIBRARY_DIRS"}


def read(kind: Kind, environ: Mapping[str, str], driver_version: str | None = None) -> ManifestFacts:
    return read_manifests(kind, environ, driver_version=driver_version)


def vulkan(path: Path, **environ: str) -> ManifestFacts:
    return read("vulkan", loader_environ(VK_DRIVER_FILES=str(path), **environ))


def answer_of(kind: Kind, environ: Mapping[str, str]) -> Mapping[str, Any]:
    return run_probe(kind, "devices", environ=environ, timeout_s=60).answer


def loader_accepts(kind: Kind, environ: Mapping[str, str]) -> bool:
    """Whether the real Vulkan loader gets an instance, or the real libEGL takes a vendor that has device queries."""
    answer = answer_of(kind, environ)
    if kind == "vulkan":
        return bool(answer["create_result"] == 0)
    return "EGL_EXT_device_enumeration" in answer["client_extensions"] or bool(answer["devices"])


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def manifest(library: Callable[[Path], Path], **icd: object) -> Callable[[Path], object]:
    """A manifest beside a library that ``library`` makes."""
    return lambda path: write_manifest(path, library(path.parent / "libstub.so"), **icd)


Row = tuple[Callable[[Path], object], str, str]
FILE_FAULTS: Final[list[Row]] = [
    (lambda _path: None, "manifest_missing", "unset VK_DRIVER_FILES"),
    (text(""), "manifest_empty", "remove it"),
    (text('{"ICD": {'), "manifest_malformed", "correct {path}"),
    (lambda path: path.write_bytes(b'{"ICD": "\xff"}'), "manifest_malformed", "correct {path}"),
    (text('{"file_format_version": "1.0.0"}'), "manifest_no_icd", "correct {path}"),
    (text("[]"), "manifest_no_icd", "correct {path}"),
    (text('{"file_format_version": "1.0.0", "ICD": {}}'), "manifest_no_library_path", "correct {path}"),
]
LIBRARY_FAULTS: Final[list[Row]] = [
    (manifest(lambda path: path), "library_missing", "libstub.so"),
    (manifest(lambda _path: Path("libnot_there.so.1")), "library_missing", "libnot_there.so.1"),
    (manifest(build_32_bit), "library_wrong_class", "64-bit"),
    (manifest(lambda path: truncate(build(path, "icd.c"))), "library_truncated", "libstub.so again"),
    (manifest(lambda path: build(path, "library.c")), "symbol_missing", "correct library_path in {path}"),
]


def assert_failure(check: Judgement, fault: str, repair_names: str) -> None:
    assert (check.verdict, check.fault) == ("failure", fault), check.found
    assert repair_names in (check.repair or "")


VULKAN_FAULTS: Final[list[Row]] = [
    *FILE_FAULTS,
    *LIBRARY_FAULTS,
    (text('{"ICD": {"library_path": "libvulkan_lvp.so"}}'), "manifest_no_api_version", "correct {path}"),
    (manifest(lambda _path: Path("libvulkan_lvp.so"), library_arch="32"), "manifest_library_arch", "64-bit driver"),
]
OTHER_FORMAT = '{"file_format_version": "1.1.0", "ICD": {"library_path": "libEGL_mesa.so.0"}}'
EGL_FAULTS: Final[list[Row]] = [
    *((make, fault, names.replace("VK_DRIVER_FILES", "__EGL_VENDOR")) for make, fault, names in FILE_FAULTS),
    *LIBRARY_FAULTS,
    (text(OTHER_FORMAT), "manifest_format_version", '"file_format_version": "1.0.0"'),
    (text('{"ICD": {"library_path": "libEGL_mesa.so.0"}}'), "manifest_format_version", "1.0.0"),
]


@pytest.mark.parametrize(
    ("kind", "make", "fault", "repair_names"),
    [*(("vulkan", *row) for row in VULKAN_FAULTS), *(("egl", *row) for row in EGL_FAULTS)],
)
def test_each_fault_of_a_manifest(
    kind: Kind, tmp_path: Path, make: Callable[[Path], object], fault: str, repair_names: str
) -> None:
    path = tmp_path / "driver.json"
    make(path)
    environ = loader_environ(**{FILE[kind]: str(path)})
    assert_failure(judge_manifests(read(kind, environ)), fault, repair_names.format(path=path))
    if fault != "library_truncated":  # the loader's own process dies of that one
        assert not loader_accepts(kind, environ)


def test_sound_manifests_are_well_and_the_loaders_agree(tmp_path: Path) -> None:
    installed = read_search_path(os.environ).find("libvulkan_lvp.so")
    assert installed
    (tmp_path / "libvulkan_lvp.so").symlink_to(installed.path)
    rows: list[tuple[Kind, str]] = [("egl", "libEGL_mesa.so.0")]
    rows += [("vulkan", f"{folder}libvulkan_lvp.so") for folder in ("", "./", f"{tmp_path}/")]
    for kind, library in rows:
        environ = loader_environ(**{FILE[kind]: str(write_manifest(tmp_path / "sound.json", library))})
        assert judge_manifests(read(kind, environ)).verdict == "ok"
        assert loader_accepts(kind, environ)


def test_relative_paths_are_followed_as_the_loader_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "libstub.so", "icd.c")
    write_manifest(tmp_path / "driver.json", "./libstub.so")
    monkeypatch.chdir(tmp_path)
    assert judge_manifests(vulkan(Path("driver.json"))).verdict == "ok"
    assert loader_accepts("vulkan", loader_environ(VK_DRIVER_FILES="driver.json"))


def test_a_manifest_without_the_json_suffix_is_passed_over(tmp_path: Path) -> None:
    path = write_manifest(tmp_path / "driver.icd", "libvulkan_lvp.so")
    assert_failure(judge_manifests(vulkan(path)), "manifest_not_json_name", f"{path}.json")
    assert not loader_accepts("vulkan", loader_environ(VK_DRIVER_FILES=str(path)))


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_a_variable_that_leaves_no_manifest(tmp_path: Path, variable: str) -> None:
    for value in ("", str(tmp_path)):  # set but empty counts; an empty folder
        environ = loader_environ(**{variable: value})
        assert_failure(judge_manifests(read("vulkan", environ)), "no_manifest", f"unset {variable}")
        assert not loader_accepts("vulkan", environ)


def check_missing(
    root: Path, kind: Kind, *, library: str | None = None, driver_version: str | None = DRIVER, **environ: str
) -> Judgement:
    """Judge a machine with NVIDIA's driver and no manifest; ``library``: the folder of NVIDIA's libraries."""
    variables = loader_environ(HOME="/home", **environ, **({"LD_LIBRARY_PATH": library} if library else {}))
    return judge_manifests(read_manifests(kind, variables, driver_version=driver_version, root=root))


@pytest.mark.parametrize("kind", ["vulkan", "egl"])
@pytest.mark.parametrize(
    ("environ", "driver_version", "repair_names"),
    [
        ({}, DRIVER, "Ubuntu: libnvidia-gl-<branch>"),
        (DOCKER, DRIVER, "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"),
        (DOCKER, None, "docker run --gpus all"),
        (DOCKER | {"NVIDIA_VISIBLE_DEVICES": "void"}, None, "NVIDIA_VISIBLE_DEVICES=void keeps every GPU out"),
        (DOCKER | {"NVIDIA_DRIVER_CAPABILITIES": "all"}, DRIVER, "on the host; then recreate it"),
        ({"APPTAINER_CONTAINER": "/a.sif", "NVIDIA_DRIVER_CAPABILITIES": "all"}, DRIVER, "Start with --nv"),
    ],
)
def test_no_manifest_and_no_driver_library(
    kind: Kind, environ: dict[str, str], driver_version: str | None, repair_names: str, tmp_path: Path
) -> None:
    check = check_missing(tmp_path, kind, driver_version=driver_version, **environ)
    assert_failure(check, "no_manifest", repair_names)


@pytest.mark.parametrize("beside_mesa", [True, False])
@pytest.mark.parametrize(
    ("kind", "library", "environ", "repair_names"),
    [
        ("vulkan", "libGLX_nvidia", DOCKER, f"/usr/share/vulkan/icd.d/nvidia_icd.{platform.machine()}.json"),
        ("vulkan", "libGLX_nvidia", {}, "write /usr/share/vulkan/icd.d/nvidia_icd.json: {"),
        ("egl", "libEGL_nvidia", DOCKER, "mount the host's /usr/share/glvnd/egl_vendor.d/10_nvidia.json"),
    ],
)
def test_a_driver_library_without_its_manifest_as_from_a_host_with_rhel(
    kind: Kind, library: str, environ: dict[str, str], repair_names: str, beside_mesa: bool, tmp_path: Path
) -> None:
    """The capabilities are set, and the container's tools know only the manifest's name in Ubuntu."""
    nvidia_library(tmp_path, library, "icd.c" if kind == "vulkan" else "egl_vendor.c", DRIVER)
    if beside_mesa:
        folder = "vulkan/icd.d" if kind == "vulkan" else "glvnd/egl_vendor.d"
        write_manifest(tmp_path / "usr/share" / folder / "50_mesa.json", "libvulkan_lvp.so")
    check = check_missing(tmp_path, kind, library=str(tmp_path), NVIDIA_DRIVER_CAPABILITIES="all", **environ)
    assert_failure(check, "no_nvidia_manifest" if beside_mesa else "no_manifest", repair_names)
    assert "NVIDIA_DRIVER_CAPABILITIES" not in (check.repair or "")
    written = re.search(r"write (\S+): (.*)$", check.repair or "")
    assert written
    (tmp_path / written[1].lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / written[1].lstrip("/")).write_text(written[2])  # the repair repairs it
    assert check_missing(tmp_path, kind, library=str(tmp_path)).verdict != "failure"


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        ({"VK_LOADER_DRIVERS_SELECT": "*LVP*"}, True),
        ({"VK_LOADER_DRIVERS_SELECT": "other*,lvp_icd.json"}, True),
        ({"VK_LOADER_DRIVERS_SELECT": "lvp"}, False),
        ({"VK_LOADER_DRIVERS_SELECT": "l*p_icd.json"}, False),
        ({"VK_LOADER_DRIVERS_SELECT": ""}, True),
        ({"VK_LOADER_DRIVERS_DISABLE": "*"}, False),
        ({"VK_LOADER_DRIVERS_DISABLE": "~all~"}, False),
        ({"VK_LOADER_DRIVERS_DISABLE": "lvp*"}, False),
        ({"VK_LOADER_DRIVERS_DISABLE": "*icd.json"}, False),
        ({"VK_LOADER_DRIVERS_DISABLE": "icd"}, True),
        ({"VK_LOADER_DRIVERS_DISABLE": "lvp*", "VK_LOADER_DRIVERS_SELECT": "lvp*"}, True),
    ],
)
def test_filters_work_as_in_the_loader(tmp_path: Path, filters: dict[str, str], taken: bool) -> None:
    path = write_manifest(tmp_path / "lvp_icd.json", "libvulkan_lvp.so")
    seen = vulkan(path, **filters)
    assert bool(usable(seen)) == taken
    assert loader_accepts("vulkan", loader_environ(VK_DRIVER_FILES=str(path), **filters)) == taken
    if not taken:
        assert_failure(judge_manifests(seen), "drivers_disabled", f"unset {next(iter(filters))}")


def nvidia_library(folder: Path, name: str, source: str, version: str) -> None:
    """Make a stand-in of the NVIDIA driver under its bare name."""
    file = build(folder / f"{name}.so.{version}", source)
    (folder / f"{name}.so.0").symlink_to(file.name)


def names_library(name: str, library: str, **icd: object) -> Callable[[Path], object]:
    return lambda folder: write_manifest(folder / name, library, **icd)


def nvidia(name: str, version: str, source: str = "icd.c") -> Callable[[Path], object]:
    return lambda folder: nvidia_library(folder, name, source, version)


LVP = names_library("lvp.json", "libvulkan_lvp.so")
MESA = names_library("50_mesa.json", "libEGL_mesa.so.0")
GLX = names_library("nvidia_icd.json", "libGLX_nvidia.so.0")
SAME_GLX = names_library("second.json", "libGLX_nvidia.so.0")
EGL_AS_VULKAN = names_library("second.json", "libEGL_nvidia.so.0")
OLD_GLX, OLD_EGL = nvidia("libGLX_nvidia", "580.65.06"), nvidia("libEGL_nvidia", "580.65.06", "egl_vendor.c")
REQUESTED = "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"


@pytest.mark.parametrize(
    ("kind", "makers", "driver_version", "environ", "verdict", "fault", "repair"),
    [
        *(
            ("vulkan", (names_library("old.json", "libvulkan_lvp.so", api_version=version),), None, {}, "warning",
             "manifest_api_version_stale", "set api_version in {folder}/old.json")
            for version in ("", "1.0.0")
        ),
        (
            "vulkan", (LVP, lambda folder: (folder / "bad.json").write_text("{")), None, {},
            "warning", "manifest_malformed", "correct {folder}/bad.json",
        ),
        (  # a 32-bit twin is as it should be
            "vulkan", (LVP, names_library("old.json", "libother.so", library_arch="32")), None, {}, "ok", None, "",
        ),
        ("vulkan", (OLD_GLX, GLX), "580.65.06", {}, "ok", None, ""),
        ("vulkan", (OLD_GLX, GLX), DRIVER, DOCKER, "failure", "version_mismatch", "Recreate the container"),
        (
            "egl", (OLD_EGL, names_library("10_nvidia.json", "libEGL_nvidia.so.0")), DRIVER, DOCKER,
            "failure", "version_mismatch", "Recreate the container",
        ),
        # NVIDIA_DRIVER_CAPABILITIES without graphics: only Mesa's manifests are in the container.
        ("vulkan", (LVP,), DRIVER, DOCKER, "failure", "no_nvidia_manifest", REQUESTED),
        ("egl", (MESA,), DRIVER, DOCKER, "failure", "no_nvidia_manifest", REQUESTED),
        # A broken manifest of NVIDIA counts more than a sound one of Mesa.
        ("vulkan", (LVP, GLX), DRIVER, {}, "failure", "library_missing", "libGLX_nvidia.so.0 comes with the NVIDIA"),
        (
            "vulkan", (LVP, GLX), DRIVER, {"VK_LOADER_DRIVERS_DISABLE": "nvidia*"},
            "failure", "drivers_disabled", "unset VK_LOADER_DRIVERS_DISABLE",
        ),
        (
            "vulkan", (OLD_GLX, GLX, SAME_GLX), "580.65.06", {}, "warning", "duplicate_driver",
            "remove {folder}/second.json, or set VK_DRIVER_FILES={folder}/nvidia_icd.json",
        ),
        (
            "vulkan", (nvidia("libGLX_nvidia", DRIVER), nvidia("libEGL_nvidia", DRIVER), GLX, EGL_AS_VULKAN), DRIVER,
            {}, "warning", "conflicting_drivers", "remove {folder}/second.json",
        ),
    ],
)  # fmt: skip
def test_manifests_and_libraries_of_a_machine(
    kind: Kind,
    makers: tuple[Callable[[Path], object], ...],
    driver_version: str | None,
    environ: dict[str, str],
    verdict: str,
    fault: str | None,
    repair: str,
    tmp_path: Path,
) -> None:
    for make in makers:
        make(tmp_path)
    variables = loader_environ(**{FOLDER[kind]: str(tmp_path)}, LD_LIBRARY_PATH=str(tmp_path), **environ)
    check = judge_manifests(read(kind, variables, driver_version))
    assert (check.verdict, check.fault) == (verdict, fault), check
    assert repair.format(folder=tmp_path) in (check.repair or "")


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Paths below ``tmp_path`` of what the loader takes in, in order. No library is loaded."""

    def read(wanted: Mapping[str, object], _: object) -> dict[str, Library]:
        return {name: Library(name=name, path=None, fault="library_missing") for name in wanted}

    def search(kind: Kind, **environ: str) -> list[str]:
        facts = read_manifests(kind, environ, driver_version=None, root=tmp_path)
        paths = [Path(manifest.path) for manifest in facts.manifests if not manifest.filtered_by]
        return [str(path.relative_to(tmp_path)).removesuffix("/vulkan/icd.d/x.json") for path in paths]

    monkeypatch.setattr(manifests, "read_libraries", read)
    return search


def test_the_vulkan_search_path_in_its_order(search: Callable[..., list[str]], tmp_path: Path) -> None:
    usual = ["me/.config", "etc/xdg", "etc", "me/.local/share", "usr/local/share", "usr/share"]
    for folder in (*usual, "conf", "data", "a", "b", "c"):
        (tmp_path / folder / "vulkan/icd.d").mkdir(parents=True)
        (tmp_path / folder / "vulkan/icd.d/x.json").write_text("{}")
    (tmp_path / "etc/vulkan/icd.d/readme.txt").write_text("no manifest")
    assert search("vulkan", HOME="/me") == usual
    of_machine = ["etc/xdg", "etc", "usr/local/share", "usr/share"]
    assert search("vulkan") == search("vulkan", XDG_DATA_DIRS="") == of_machine  # set but empty is as unset here
    own = {"XDG_CONFIG_HOME": "/conf", "XDG_CONFIG_DIRS": "/a:/b", "XDG_DATA_HOME": "/data", "XDG_DATA_DIRS": "/c"}
    assert search("vulkan", **own) == ["conf", "a", "b", "etc", "data", "c"]
    a, b, c = (f"/{name}/vulkan/icd.d" for name in "abc")
    assert search("vulkan", VK_ADD_DRIVER_FILES=a, XDG_DATA_DIRS="/c")[0] == "a"
    assert search("vulkan", VK_DRIVER_FILES=f"{b}/x.json", VK_ICD_FILENAMES=a, VK_ADD_DRIVER_FILES=c) == ["b"]
    assert search("vulkan", VK_ICD_FILENAMES=f"{a}:{b}/x.json") == ["a", "b"]


def test_a_folder_that_may_not_be_entered_is_passed_over(
    search: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("me/.config", "etc"):
        (tmp_path / folder / "vulkan/icd.d").mkdir(parents=True)
        (tmp_path / folder / "vulkan/icd.d/x.json").write_text("{}")
    deny(monkeypatch, tmp_path / "me")
    assert search("vulkan", HOME="/me") == ["etc"]
    assert search("vulkan", VK_DRIVER_FILES="/me/.config/vulkan/icd.d/x.json") == ["me/.config"]


def test_the_egl_search_path_in_its_order(search: Callable[..., list[str]], tmp_path: Path) -> None:
    etc, usr = "etc/glvnd/egl_vendor.d", "usr/share/glvnd/egl_vendor.d"
    for name in (f"{etc}/b.json", f"{etc}/a.json", f"{usr}/10.json", "own/c.json", "own/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert search("egl") == [f"{etc}/a.json", f"{etc}/b.json", f"{usr}/10.json"]
    names, folders = FILE["egl"], FOLDER["egl"]
    assert search("egl", **{folders: "/own"}) == ["own/c.json"]
    assert search("egl", **{names: "/own/notes.txt", folders: "/x"}) == ["own/notes.txt"]
    assert search("egl", **{names: "", folders: "/own"}) == []
