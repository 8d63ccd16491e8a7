"""A bundle is packed, checked and installed, with the installer that it carries. What goes in: test_bundle_contents."""

import ast
import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suite import bundle, install_bundle
from suite.bundle import make_bundle
from suite.errors import BundleError
from tests.synthetic_wheels import make_environment, write_wheel

WORKER = {
    "isaaclab": ["torch==2.11.0", "numpy>=2", "newton[sim]==1.6.1", "open3d"],
    "newton": ["mujoco; extra == 'sim'"],
}
VERSIONS = {"isaaclab": "3.0.0", "newton": "1.6.1", "torch": "2.11.0", "numpy": "2.5.5", "mujoco": "3.12.0"}
FILES = {
    "newton": {"newton/tests/test_it.py": "", "newton/__pycache__/it.pyc": "", "newton/examples/ant.usda": "ant"},
    "isaaclab": {"isaaclab/source/isaaclab_tasks/test/golden_images/it.png": "", "isaaclab/kernel.py": "K = 1"},
}


def worker_wheels(folder: Path, names: Sequence[str] = tuple(VERSIONS)) -> list[Path]:
    return [
        write_wheel(folder, name, VERSIONS[name], requires=WORKER.get(name, []), files=FILES.get(name))
        for name in names
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout, its worker environment and its assets: what bundles are made of."""
    root = tmp_path_factory.mktemp("made")
    project = root / "project"
    (project / "containers/pins").mkdir(parents=True)
    (project / "suite").mkdir()
    (project / "containers/pins/worker.in").write_text("isaaclab==3.0.0 # why\n\n# more\n")
    (project / "pyproject.toml").write_text('[dependency-groups]\nsuite = ["packaging>=20"]\n')
    (project / "suite/__init__.py").write_text("")
    (project / "suite/__main__.py").write_text(
        "import isaaclab.kernel, os, pathlib, sys\n"
        "print(sys.argv[1:], pathlib.Path(os.environ['ISAACSIM_ASSET_ROOT'], 'manifest.json').read_text())\n"
    )
    git = ["git", "-C", str(project), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (project / "untracked").write_text("")
    (root / "assets/Isaac").mkdir(parents=True)
    (root / "assets/Isaac/ant.usd").write_bytes(bytes(range(256)) * 40)
    (root / "assets/manifest.json").write_text("{}")
    make_environment(root / "worker", worker_wheels(root / "wheels"))
    return root


def make(made: Path, out_dir: Path, **options: Any) -> dict[str, Any]:
    make_bundle(
        project_root=made / "project",
        worker_python=made / "worker/bin/python",
        asset_root=made / "assets",
        out_dir=out_dir,
        on_message=lambda _: None,
        **options,
    )
    description: dict[str, Any] = json.loads((out_dir / "bundle.json").read_text())
    return description


def run_installer(out_dir: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Python keeps nothing of what it compiles there, so that the folder holds what was packed and no more."""
    command = [sys.executable, out_dir / "install.py", *arguments]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The Python of a host that has nothing."""
    return make_environment(tmp_path / "target", [])


@pytest.fixture
def cut(made: Path, tmp_path: Path) -> Path:
    """A bundle of several parts."""
    out_dir = tmp_path / "cut"
    make(made, out_dir)
    index = json.loads((out_dir / "bundle.json").read_text())
    entries = [
        ("site/isaaclab/kernel.py", made / "project/pyproject.toml"),
        ("assets/a", made / "assets/Isaac/ant.usd"),
    ]
    (out_dir / "part-000").unlink()
    parts = bundle._pack(entries, out_dir=out_dir, part_bytes=200)
    index["parts"] = [{"name": part.name, "bytes": part.bytes, "sha256": part.sha256} for part in parts]
    (out_dir / "bundle.json").write_text(json.dumps(index))
    return out_dir


def test_bundle_is_packed_installed_and_started(made: Path, tmp_path: Path, target: Path) -> None:
    index = make(made, tmp_path / "out")
    assert {item["name"] for item in index["distributions"]} == {*VERSIONS, "packaging"}
    assert index["left_out"].keys() == {"open3d"}
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert (done.returncode, done.stderr) == (0, "")
    site = tmp_path / "in/site"
    assert (site / "newton/examples/ant.usda").read_text() == "ant"
    assert not (site / "newton/tests").exists()
    assert not list(site.rglob("__pycache__"))
    assert not list(site.rglob("golden_images"))
    assert (tmp_path / "in/assets/Isaac/ant.usd").read_bytes() == (made / "assets/Isaac/ant.usd").read_bytes()
    assert not (tmp_path / "in/labscale/untracked").exists()
    assert not (tmp_path / "in/.unpacking").exists()
    started = subprocess.run(
        [tmp_path / "in/labscale.sh", "bench", "--x", "a b"], capture_output=True, text=True, check=True
    )
    assert started.stdout == f"{['bench', '--worker-python', str(target), '--x', 'a b']} {{}}\n"
    again = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert again.returncode == BundleError.exit_code
    assert "already holds site" in again.stderr


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


def test_parts_may_lie_in_several_folders(cut: Path, made: Path) -> None:
    (cut / "more").mkdir()
    (cut / "part-001").rename(cut / "more/part-001")
    index = install_bundle.read_bundle([cut])
    found = install_bundle.find_parts(index, [cut, cut / "more"])
    install_bundle.unpack(found, cut / "in")
    assert (cut / "in/assets/a").read_bytes() == (made / "assets/Isaac/ant.usd").read_bytes()


def test_missing_cut_and_changed_parts_are_all_named(cut: Path, tmp_path: Path, target: Path) -> None:
    (cut / "part-000").unlink()
    torn = cut / "part-001"
    torn.write_bytes(torn.read_bytes()[:150])
    changed = cut / "part-002"
    content = changed.read_bytes()
    changed.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    done = run_installer(cut, "--into", tmp_path / "in", "--python", target)
    assert done.returncode == BundleError.exit_code
    assert "part-000 is missing (200 bytes)" in done.stderr
    assert "part-001 is broken: 150 of 200 bytes" in done.stderr
    assert "part-002 is broken: its checksum differs" in done.stderr
    assert not (tmp_path / "in").exists()


def test_python_of_another_version_is_refused(made: Path, tmp_path: Path) -> None:
    make(made, tmp_path / "out")
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\necho Python 3.10.12\n")
    old.chmod(0o755)
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", old)
    assert done.returncode == BundleError.exit_code
    assert "is Python 3.10.12, the bundle was made for Python 3.12" in done.stderr
    assert not (tmp_path / "in").exists()


def test_too_little_disk_is_said_before_unpacking(made: Path, tmp_path: Path, target: Path) -> None:
    index = make(made, tmp_path / "out")
    (tmp_path / "out/bundle.json").write_text(json.dumps({**index, "unpacked_bytes": 10**18}))
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", target)
    assert done.returncode == BundleError.exit_code
    assert "needed are 1000000000000 MB" in done.stderr


def test_target_keeps_what_it_has_and_fits(made: Path, tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("torch==2.11.0+cu130\nnumpy==2.5.2\nmujoco\n# comment\n-e git+x\nother @ file:///x\n")
    index = make(made, tmp_path / "out", target_freeze=freeze)
    assert {item["name"] for item in index["distributions"]} == {"isaaclab", "newton", "packaging"}
    assert index["expected_on_target"] == [
        {"name": "mujoco", "version": None, "specifier": "", "assumed": True},
        {"name": "numpy", "version": "2.5.2", "specifier": ">=2", "assumed": False},
        {"name": "torch", "version": "2.11.0+cu130", "specifier": "==2.11.0", "assumed": False},
    ]
    complete = make_environment(tmp_path / "complete", worker_wheels(tmp_path / "wheels", ["torch", "numpy", "mujoco"]))
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", complete)
    assert (done.returncode, done.stderr) == (0, "")


def test_target_that_is_not_as_said_is_told_what_it_lacks(made: Path, tmp_path: Path) -> None:
    freeze = tmp_path / "freeze.txt"
    freeze.write_text("torch==2.11.0\nnumpy\nmujoco\n")
    make(made, tmp_path / "out", target_freeze=freeze)
    old_numpy, old_torch = (
        write_wheel(tmp_path / "old", "numpy", "1.26.4"),
        write_wheel(tmp_path / "old", "torch", "2.10.0"),
    )
    python = make_environment(tmp_path / "target", [old_numpy, old_torch])
    done = run_installer(tmp_path / "out", "--into", tmp_path / "in", "--python", python)
    assert done.returncode == BundleError.exit_code
    assert "torch on this host is 2.10.0, declared is ==2.11.0" in done.stderr
    assert "mujoco is missing on this host" in done.stderr
    assert "numpy" not in done.stderr  # its version was not promised
    assert list((tmp_path / "in").iterdir()) == []
    good = worker_wheels(tmp_path / "wheels", ["torch", "mujoco"])
    done = run_installer(
        tmp_path / "out", "--into", tmp_path / "in", "--python", make_environment(tmp_path / "good", [old_numpy, *good])
    )
    assert done.returncode == 0
    assert "warning: numpy on this host is 1.26.4, declared is >=2" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part_size_mib": 0}, "at least 1"),
        ({"asset_root": Path("/nowhere")}, r"manifest\.json.*`nox -s bench`"),
        ({"stack": "isaacsim"}, "cannot be bundled"),
        ({"worker_python": Path("/bin/false")}, "does not run.*`nox -s bench`"),
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
    with pytest.raises(BundleError, match=r"cannot be written to .*/file/out: Not a directory"):
        make(made, tmp_path / "file" / "out")
    (tmp_path / "old" / "part-000").mkdir(parents=True)
    with pytest.raises(BundleError, match=r"cannot be written to .*/old: Is a directory"):
        make(made, tmp_path / "old")

    def disk_full(_: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", disk_full)
    with pytest.raises(BundleError, match=r"cannot be written to .*/full: No space left on device"):
        make(made, tmp_path / "full")


def test_members_that_would_leave_the_folder_are_refused(made: Path, tmp_path: Path) -> None:
    bundle._pack([("../outside", made / "assets/manifest.json")], out_dir=tmp_path, part_bytes=10_000)
    with pytest.raises(install_bundle.InstallError, match="outside"):
        install_bundle.unpack([tmp_path / "part-000"], tmp_path / "in")
    assert not (tmp_path / "outside").exists()


def test_installer_starts_with_an_old_python_and_nothing_installed() -> None:
    tree = ast.parse(bundle.INSTALLER.read_text(), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    assert BundleError.exit_code == install_bundle.EXIT_CODE
