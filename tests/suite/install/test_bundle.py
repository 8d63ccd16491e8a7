"""A bundle is packed. What goes in: test_bundle_contents; how it is installed: test_install_bundle."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from suite.errors import BundleError
from suite.external.machine import CANNOT_SUBMIT
from suite.install import install_bundle
from suite.install.bundle import make_bundle
from suite.install.bundle_contents import read_freeze
from tests.fixtures.stand_ins.small_bundles import make, run_installer, worker_wheels
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel


def test_equal_contents_give_equal_parts(made: Path, tmp_path: Path) -> None:
    first = make(made, tmp_path / "first")
    second = make(made, tmp_path / "second")
    assert first["parts"] == second["parts"]
    assert (tmp_path / "first/part-000").read_bytes() == (tmp_path / "second/part-000").read_bytes()


def test_an_older_bundle_is_replaced_and_nothing_else(made: Path, tmp_path: Path) -> None:
    (tmp_path / "part-007").write_text("of an older bundle")
    index = make(made, tmp_path)
    assert [part["name"] for part in index["parts"]] == ["part-000"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle.json", "install.py", "part-000"]
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BundleError, match=r"thesis\.tex"):
        make(made, tmp_path)
    assert (tmp_path / "part-000").exists()


def test_parts_are_never_larger_than_asked_for(cut: Path) -> None:
    parts = sorted(cut.glob("part-*"))
    assert len(parts) > 2
    assert [path.stat().st_size for path in parts[:-1]] == [200] * (len(parts) - 1)
    assert 0 < parts[-1].stat().st_size <= 200
    install_bundle.unpack(parts, cut / "in")
    assert (cut / "in/assets/a").stat().st_size == 256 * 40


def test_target_keeps_what_it_has_and_fits(made: Path, tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("torch==2.11.0+cu130\nnumpy==2.5.2\nmujoco\n# comment\n-e git+x\nother @ file:///x\n")
    index = make(made, tmp_path / "out", target=read_freeze(freeze))
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
        index = make(made, tmp_path / f"bundle-{name}", project_root=project, worker_python=worker)
        brought.append({item["name"] for item in index["distributions"]} & {"torchrl", "ray"})
    assert brought == [set(), set(), {"torchrl", "ray"}]


def test_a_bundle_of_a_changed_checkout_says_that_its_results_cannot_be_submitted(made: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(made / "project", project, symlinks=True)
    said: list[str] = []

    def pack() -> bool:
        said.clear()
        make_bundle(
            project_root=project,
            worker_python=made / "worker/bin/python",
            asset_root=made / "assets",
            out_dir=tmp_path / "out",
            on_message=said.append,
        )
        return bool(json.loads((tmp_path / "out" / "bundle.json").read_text())["suite_dirty"])

    assert not pack()
    assert CANNOT_SUBMIT not in said
    (project / "suite/__init__.py").write_text("changed = True\n")
    assert pack()
    assert said[0] == CANNOT_SUBMIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part_size_mib": 0}, "at least 1"),
        ({"asset_root": Path("/nowhere")}, r"manifest\.json.*`nox -s bench`"),
        ({"stack": "isaacsim"}, "cannot be bundled"),
    ],
)
def test_what_cannot_be_bundled(made: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        make_bundle(
            **{
                "project_root": made / "project",
                "worker_python": made / "worker/bin/python",
                "asset_root": made / "assets",
                "out_dir": tmp_path / "out",
                **options,
            }
        )
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_said(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
