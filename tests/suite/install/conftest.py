from collections.abc import Mapping
from pathlib import Path

import pytest

from suite.install import pins
from suite.install import worker as provision
from tests.fixtures.stand_ins.synthetic_wheels import pin, use_wheels, write_wheel

NEEDED = provision.NEEDED["kitless"]
# Stands in for tasks.assets: writes a manifest that names how often it ran.
BUILD = """
import pathlib, sys
root = pathlib.Path(sys.argv[1]); root.mkdir()
runs = pathlib.Path(__file__ if "__file__" in globals() else "{runs}")
with runs.open("a") as file: file.write("x")
(root / "manifest.json").write_text(runs.read_text())
"""


def wheels(folder: Path, versions: Mapping[str, str | None] = NEEDED) -> list[Path]:
    return [write_wheel(folder, name, version or "1.0") for name, version in versions.items()]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose worker pins are tiny wheels, which uv finds through the user's own settings."""
    project = tmp_path / "project"
    path = project / pins.PINS_DIR / "worker.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(pin(wheel) for wheel in wheels(tmp_path / "wheels")))
    (project / "tasks").mkdir()
    (project / "tasks" / "assets.py").write_text("")
    monkeypatch.setenv("LABSCALE_CACHE", str(tmp_path / "cache"))
    use_wheels(monkeypatch, tmp_path)
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT", raising=False)
    monkeypatch.setattr(provision, "INSTALL_DISK_GB", 0.001)
    monkeypatch.setattr(provision, "ROOT", project)
    monkeypatch.setattr(provision, "BUILD_ASSETS", ("-c", BUILD.format(runs=project / "runs")))
    return project
