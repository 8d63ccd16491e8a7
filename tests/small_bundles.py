"""Bundles of tiny wheels, and the installer that travels in them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from suite.install import bundle
from suite.install.bundle import make_bundle
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


def run_installer(
    out_dir: Path, *arguments: str | Path, below: Sequence[str] = (), cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Python keeps nothing of what it compiles there, so that the folder holds what was packed and no more."""
    command = [*below, sys.executable, out_dir / "install.py", *arguments]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environ, cwd=cwd, capture_output=True, text=True, check=False)


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
