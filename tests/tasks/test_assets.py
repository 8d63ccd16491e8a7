"""The offline assets: what the manifest says of them holds, in the files and in Isaac Lab's own simulation."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from suite.install.worker import Worker
from tests.fixtures.runs.worker_probes import run_in_worker

pytestmark = pytest.mark.worker

FINGERS: Final = ("FF", "MF", "RF", "LF")


@pytest.fixture(scope="module")
def manifest(worker: Worker) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(manifest_path(worker).read_text(encoding="utf-8"))
    return content


def manifest_path(worker: Worker) -> Path:
    assert worker.asset_root is not None
    return worker.asset_root / "manifest.json"


def test_the_manifest_names_every_file_by_its_hash(worker: Worker, manifest: dict[str, Any]) -> None:
    root = manifest_path(worker).parent
    there = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} - {"manifest.json"}
    assert there == set(manifest["files"])
    for name, entry in manifest["files"].items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == entry["sha256"], name
    assert hashlib.sha256(manifest_path(worker).read_bytes()).hexdigest() == worker.asset_sha256


def test_building_again_gives_the_same_manifest(worker: Worker, tmp_path: Path) -> None:
    output = run_in_worker(worker, "-m", "tasks.assets", str(tmp_path / "assets"))
    assert (tmp_path / "assets" / "manifest.json").read_bytes() == manifest_path(worker).read_bytes()
    assert str(worker.asset_sha256)[:12] in output


def test_the_ant_is_as_heavy_and_as_agile_as_the_manifest_says(hand: dict[str, Any], manifest: dict[str, Any]) -> None:
    ant, facts = hand["ant"], manifest["facts"]["ant"]
    assert ant["mass_kg"] == pytest.approx(facts["mass_kg"], rel=1e-4)
    limits = sorted(ant["joint_limits_deg"].values())  # the two name and order the joints in their own ways
    assert len(limits) == 8
    for simulated, stated in zip(limits, sorted(facts["joint_limits_deg"]), strict=True):
        assert simulated == pytest.approx(stated, abs=0.01)


def test_the_four_tendons_follow_their_commands(hand: dict[str, Any], manifest: dict[str, Any]) -> None:
    measured, commanded = hand["measured_rad"], hand["commanded_rad"]
    assert set(measured) == set(manifest["facts"]["hand"]["tendons"]) == {f"rh_{finger}J0" for finger in FINGERS}
    assert len(commanded) == 4
    assert commanded[-1] - commanded[0] > 0.5  # a tendon that does not move follows at most some of them
    for tendon, angles in measured.items():
        assert angles == pytest.approx(commanded, abs=0.03), tendon


def test_the_hands_camera_sees_what_it_saw(hand: dict[str, Any]) -> None:
    """Rounding of shades apart. A shift is the control."""
    assert hand["channels"]["rgb"][1:] == [120, 120, 3]
    are_same = [shade < 1 and share_of_pixels <= 0.01 for shade, share_of_pixels in hand["differences"]]
    assert are_same == [True, False]
