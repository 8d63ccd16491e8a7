"""Which distributions and files go into a bundle, and what the target is said to have."""

import importlib.metadata
import shutil
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from suite.__main__ import main
from suite.errors import BundleError
from suite.install import bundle_contents
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel


def select(tmp_path: Path, root: str, target: dict[str, str | None]) -> bundle_contents.Selection:
    return bundle_contents.select([Requirement(root)], pool=distributions(tmp_path), target=target)


def distributions(tmp_path: Path) -> dict[str, importlib.metadata.Distribution]:
    site = tmp_path / "site"
    graph = {"a": ("1.0", ["b", "c"]), "b": ("2.0", []), "c": ("1.0", ["b>=2", "old; python_version < '3'"])}
    for name, (version, requires) in graph.items():
        shutil.unpack_archive(write_wheel(tmp_path / "wheels", name, version, requires=requires), site, "zip")
    return bundle_contents.installed([str(site)])


def test_of_an_overruled_bound_the_newer_version_is_packed(tmp_path: Path) -> None:
    """No version of packaging satisfies both ovphysx and pytest."""
    suite = [
        write_wheel(tmp_path / "suite", "pytest", "9.2", requires=["packaging>=24"]),
        write_wheel(tmp_path / "suite", "packaging", "26.3"),
        write_wheel(tmp_path / "suite", "numpy", "1.0"),
    ]
    worker = [
        write_wheel(tmp_path / "worker", "ovphysx", "0.6", requires=["packaging>=20,<24", "numpy<3"]),
        write_wheel(tmp_path / "worker", "packaging", "23.2"),
        write_wheel(tmp_path / "worker", "numpy", "2.5"),
    ]
    sides = []
    for name, wheels in (("s", suite), ("w", worker)):
        python = make_environment(tmp_path / name, wheels)
        sides.append(bundle_contents.installed(bundle_contents.search_path(python)))
    pool = bundle_contents.pooled(*sides)
    chosen = bundle_contents.select(map(Requirement, ("pytest", "ovphysx")), pool=pool, target={})
    assert {item.name: item.version for item in chosen.bundled} == {
        "numpy": "2.5", "ovphysx": "0.6", "packaging": "26.3", "pytest": "9.2",
    }  # fmt: skip
    with pytest.raises(BundleError, match=r"packaging is 23\.2 here"):
        bundle_contents.select(map(Requirement, ("pytest", "ovphysx")), pool={**sides[0], **sides[1]}, target={})


def test_a_worker_without_the_dependant_keeps_its_older_version(tmp_path: Path) -> None:
    suite = [
        write_wheel(tmp_path / "suite", "pytest", "9.2", requires=["packaging>=22"]),
        write_wheel(tmp_path / "suite", "packaging", "26.3"),
    ]
    worker = [
        write_wheel(tmp_path / "worker", "lerobot", "0.6", requires=["packaging<26"]),
        write_wheel(tmp_path / "worker", "packaging", "25.0"),
    ]
    sides = [
        bundle_contents.installed(bundle_contents.search_path(make_environment(tmp_path / name, wheels)))
        for name, wheels in (("s", suite), ("w", worker))
    ]
    roots = map(Requirement, ("pytest", "lerobot"))
    chosen = bundle_contents.select(roots, pool=bundle_contents.pooled(*sides), target={"packaging": "26.3"})
    assert {item.name: item.version for item in chosen.bundled} == {
        "lerobot": "0.6", "packaging": "25.0", "pytest": "9.2",
    }  # fmt: skip


def test_what_the_target_has_is_bundled_when_a_later_dependant_does_not_accept_it(tmp_path: Path) -> None:
    selection = select(tmp_path, "a", {"b": "1.0"})
    assert [item.name for item in selection.bundled] == ["a", "b", "c"]
    assert select(tmp_path, "a", {"b": "2.1"}).expected[0].specifier == ">=2"
    assert [item.name for item in select(tmp_path, "a", {"b": None}).bundled] == ["a", "c"]


def test_what_nobody_has_or_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="missing-one"):
        select(tmp_path, "missing-one>=1", {})
    with pytest.raises(BundleError, match=r"a is 1\.0 here.*>=2"):
        select(tmp_path, "a>=2", {})


def test_compiler_for_the_cpu_stays_at_home_when_the_target_has_gpus(tmp_path: Path) -> None:
    compiler = "warp/bin/warp-clang.so"
    wheel = write_wheel(tmp_path, "warp", "1.0", files={compiler: "", "warp/bin/warp.so": ""})
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    warp = bundle_contents.installed([str(tmp_path / "site")])["warp"]
    assert {name for name, _ in bundle_contents.files(warp, for_device="cpu")} > {compiler, "warp/bin/warp.so"}
    assert compiler not in {name for name, _ in bundle_contents.files(warp, for_device="cuda")}


def test_distribution_that_works_through_a_pth_file_is_refused(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "hook", "1.0", files={"hook.pth": "import hook"})
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    hook = bundle_contents.installed([str(tmp_path / "site")])["hook"]
    with pytest.raises(BundleError, match=r"hook\.pth"):
        list(bundle_contents.files(hook, for_device="cpu"))


def test_versions_that_cannot_be_compared_are_not_known(tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text(f"torch==2.11.0\nold===2004d\nany==1.*\nlong=={'9' * 5000}\n")
    assert bundle_contents.read_freeze(freeze) == {"torch": "2.11.0", "old": None, "any": None, "long": None}


def test_freeze_that_cannot_be_read_names_the_line(tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("torch==2.11.0\nnvidia-*\n")
    with pytest.raises(BundleError, match=r"line 2 is 'nvidia-\*'"):
        bundle_contents.read_freeze(freeze)


def test_a_list_of_another_python_is_refused_before_anything_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("suite.commands.packing.provision_worker", lambda **_: pytest.fail("installs a worker"))
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("numpy==2.5.2\nisaaclab==3.0.0\n")
    code = main(["bundle", "--out", str(tmp_path / "out"), "--target-has", str(freeze)])
    said = " ".join(capsys.readouterr().err.split())
    assert code == BundleError.exit_code
    assert "freeze.txt has no torch" in said
    assert "`python3 -m pip freeze --all`" in said
    assert "leave --target-has out" in said
