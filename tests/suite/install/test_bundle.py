"""A bundle is packed, with what the target lacks. How it is installed: test_install_bundle."""

import errno
import importlib.metadata
import os
import shutil
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from suite.__main__ import main
from suite.errors import BundleError
from suite.external.machine import CANNOT_SUBMIT
from suite.install import bundle_contents
from suite.schema.record import Device
from tests.fixtures.stand_ins.small_bundles import make, run_installer, worker_wheels
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel

DEVICES: tuple[Device, ...] = ("cpu", "cuda")


def test_equal_contents_give_equal_parts_in_place_of_an_older_bundle_and_of_nothing_else(
    made: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    (second / "part-007").write_text("of an older bundle")
    index = make(made, first)
    assert make(made, second)["parts"] == index["parts"]
    assert (first / "part-000").read_bytes() == (second / "part-000").read_bytes()
    assert sorted(path.name for path in second.iterdir()) == ["bundle.json", "install.py", "part-000"]
    (second / "thesis.tex").write_text("")
    with pytest.raises(BundleError, match=r"thesis\.tex"):
        make(made, second)
    assert (second / "part-000").exists()


def test_parts_are_never_larger_than_asked_for(cut: Path) -> None:
    parts = sorted(cut.glob("part-*"))
    assert len(parts) > 2
    assert [path.stat().st_size for path in parts[:-1]] == [200] * (len(parts) - 1)
    assert 0 < parts[-1].stat().st_size <= 200


def test_target_keeps_what_it_has_and_fits(made: Path, tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("torch==2.11.0+cu130\nnumpy==2.5.2\nmujoco\n# comment\n-e git+x\nother @ file:///x\n")
    index = make(made, tmp_path / "out", target=bundle_contents.read_freeze(freeze))
    assert {item["name"] for item in index["distributions"]} == {"isaaclab", "newton", "packaging"}
    assert index["expected_on_target"] == [
        {"name": "mujoco", "version": None, "specifier": "", "assumed": True},
        {"name": "numpy", "version": "2.5.2", "specifier": ">=2", "assumed": False},
        {"name": "torch", "version": "2.11.0+cu130", "specifier": "==2.11.0", "assumed": False},
    ]
    complete = make_environment(tmp_path / "complete", worker_wheels(tmp_path / "wheels", ["torch", "numpy", "mujoco"]))
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", complete)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_of_an_rl_library_brings_what_that_needs(made: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(made / "project", project)
    (project / "containers/pins/torchrl.in").write_text("torchrl==0.14.1 # why\nray==2.60.0\n")
    own = [write_wheel(tmp_path / "own", name, version) for name, version in (("torchrl", "0.14.1"), ("ray", "2.60.0"))]
    brought = []
    for name, wheels in (("none", []), ("half", own[:1]), ("whole", own)):
        worker = make_environment(tmp_path / name, [*worker_wheels(tmp_path / "wheels"), *wheels])
        index = make(made, tmp_path / f"bundle-{name}", project_root=project, python=worker)
        brought.append({item["name"] for item in index["distributions"]} & {"torchrl", "ray"})
    assert brought == [set(), set(), {"torchrl", "ray"}]


def test_a_bundle_of_a_changed_checkout_says_that_its_results_cannot_be_submitted(made: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(made / "project", project, symlinks=True)
    for is_changed in (False, True):
        if is_changed:
            (project / "suite/__init__.py").write_text("changed = True\n")
        messages: list[str] = []
        index = make(made, tmp_path / "out", project_root=project, on_message=messages.append)
        assert (index["suite_dirty"], CANNOT_SUBMIT in messages) == (is_changed, is_changed)


def test_what_cannot_be_bundled_or_written_is_said(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BundleError, match="Isaac Sim cannot be bundled"):
        make(made, tmp_path / "out", stack="isaacsim")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="/file/out"):
        make(made, tmp_path / "file" / "out")
    (tmp_path / "old" / "part-000").mkdir(parents=True)
    with pytest.raises(BundleError, match="/old"):
        make(made, tmp_path / "old")

    def disk_full(_: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", disk_full)
    with pytest.raises(BundleError, match="No space left on device"):
        make(made, tmp_path / "full")


# ---- which distributions and files go in, and what the target is said to have ----


def distributions(tmp_path: Path) -> dict[str, importlib.metadata.Distribution]:
    site = tmp_path / "site"
    graph = {"a": ("1.0", ["b", "c"]), "b": ("2.0", []), "c": ("1.0", ["b>=2", "old; python_version < '3'"])}
    for name, (version, requires) in graph.items():
        shutil.unpack_archive(write_wheel(tmp_path / "wheels", name, version, requires=requires), site, "zip")
    return bundle_contents.installed([str(site)])


Side = dict[str, tuple[str, list[str]]]  # name -> version and requirements


@pytest.mark.parametrize(
    ("suite", "worker", "packed", "message"),
    [
        (  # no version of packaging satisfies both ovphysx and pytest, and the bound of ovphysx is overruled
            {"pytest": ("9.2", ["packaging>=24"]), "packaging": ("26.3", []), "numpy": ("1.0", [])},
            {"ovphysx": ("0.6", ["packaging>=20,<24", "numpy<3"]), "packaging": ("23.2", []), "numpy": ("2.5", [])},
            {"numpy": "2.5", "ovphysx": "0.6", "packaging": "26.3", "pytest": "9.2"},
            r"packaging is 23\.2 here",
        ),
        (  # a worker without ovphysx keeps its older version
            {"pytest": ("9.2", ["packaging>=22"]), "packaging": ("26.3", [])},
            {"lerobot": ("0.6", ["packaging<26"]), "packaging": ("25.0", [])},
            {"lerobot": "0.6", "packaging": "25.0", "pytest": "9.2"},
            None,
        ),
    ],
)
def test_of_an_overruled_bound_alone_the_newer_version_is_packed(
    tmp_path: Path, suite: Side, worker: Side, packed: dict[str, str], message: str | None
) -> None:
    sides = []
    for name, packages in (("suite", suite), ("worker", worker)):
        for package, (version, requires) in packages.items():
            wheel = write_wheel(tmp_path / "wheels" / name, package, version, requires=requires)
            shutil.unpack_archive(wheel, tmp_path / name, "zip")
        sides.append(bundle_contents.installed([str(tmp_path / name)]))
    roots = [Requirement("pytest"), Requirement(next(iter(worker)))]
    chosen = bundle_contents.select(roots, pool=bundle_contents.pooled(*sides), target={"packaging": "9"})
    assert {item.name: item.version for item in chosen.bundled} == packed
    if message is not None:
        with pytest.raises(BundleError, match=message):
            bundle_contents.select(roots, pool={**sides[0], **sides[1]}, target={})


def test_what_the_target_has_is_bundled_when_a_later_dependant_does_not_accept_it(tmp_path: Path) -> None:
    pool = distributions(tmp_path)
    for version, bundled, specifiers in (
        ("1.0", ["a", "b", "c"], []),
        ("2.1", ["a", "c"], [">=2"]),
        (None, ["a", "c"], [">=2"]),
    ):
        selection = bundle_contents.select([Requirement("a")], pool=pool, target={"b": version})
        assert [item.name for item in selection.bundled] == bundled
        assert [item["specifier"] for item in selection.expected] == specifiers
    for root, message in (("missing-one>=1", "missing-one"), ("a>=2", r"a is 1\.0 here.*>=2")):
        with pytest.raises(BundleError, match=message):
            bundle_contents.select([Requirement(root)], pool=pool, target={})


def test_which_files_of_a_distribution_are_packed(tmp_path: Path) -> None:
    compiler = "warp/bin/warp-clang.so"
    for name, files in (("warp", {compiler: "", "warp/bin/warp.so": ""}), ("hook", {"hook.pth": "import hook"})):
        shutil.unpack_archive(write_wheel(tmp_path, name, "1.0", files=files), tmp_path / "site", "zip")
    site = bundle_contents.installed([str(tmp_path / "site")])
    packed = {
        device: {name for name, _ in bundle_contents.files([site["warp"]], for_device=device)} for device in DEVICES
    }
    assert packed["cpu"] - packed["cuda"] == {compiler}
    with pytest.raises(BundleError, match=r"hook\.pth"):  # a folder on PYTHONPATH does not run it
        list(bundle_contents.files([site["hook"]], for_device="cpu"))


def test_a_freeze_is_read_and_a_line_that_cannot_be_is_named(tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text(f"torch==2.11.0\nold===2004d\nany==1.*\nlong=={'9' * 5000}\n")
    assert bundle_contents.read_freeze(freeze) == {"torch": "2.11.0", "old": None, "any": None, "long": None}
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
    assert code == BundleError.exit_code
    assert "freeze.txt has no torch" in " ".join(capsys.readouterr().err.split())
