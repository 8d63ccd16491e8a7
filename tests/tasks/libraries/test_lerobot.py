"""A policy of LeRobot acting, and LeRobot's data set writer, for real on the CPU in Cartpole with a camera."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.runs.camera_cartpole import CAMERA_CARTPOLE, catalog_with_camera
from tests.fixtures.runs.real_runs import cartpole
from tests.fixtures.runs.trained_runs import Trained, TrainSeries

pytestmark = pytest.mark.worker

STEPS = 4
ENVIRONMENTS = 2


def run(workload: str, train_series: TrainSeries) -> Trained:
    series = cartpole(
        "lerobot", task=CAMERA_CARTPOLE, workload=workload, num_envs=ENVIRONMENTS, num_steps_per_env=STEPS,
    )  # fmt: skip
    return train_series(series, catalog=catalog_with_camera())


def test_a_policy_chooses_every_action_and_its_calls_are_timed_in_marked_iterations(train_series: TrainSeries) -> None:
    (rank,) = run("policy_rollout", train_series).record.ranks
    assert rank.settings["versions.lerobot"] == "0.6.1"
    usual_s, rare_s = (rank.samples[f"lerobot.latency_{name}_s"] for name in ("median", "p99"))
    assert usual_s[:2] == rare_s[:2] == (None, None)
    inference_s, step_s, iteration_s = (
        rank.samples[f"{name}_time_s"][2] or 0 for name in ("inference", "environment_step", "iteration")
    )
    assert 0 < (usual_s[2] or 0) <= (rare_s[2] or 0) < inference_s
    assert inference_s > STEPS / 2 * (usual_s[2] or 0)
    assert 0 < inference_s + step_s < iteration_s
    assert int(rank.settings["lerobot.policy_parameters"] or 0) > 1_000_000
    assert rank.parameters_sha256 not in {None, hashlib.sha256().hexdigest()}, "it names the weights of the seed"
    assert {check.verdict for check in rank.validity if check.feature in {"physics", "cameras"}} == {"ok"}


def test_what_is_recorded_comes_back_and_nothing_of_it_is_left(train_series: TrainSeries) -> None:
    caches = Path.home() / ".cache" / "huggingface"
    before = caches.exists()
    trained = run("dataset_recording", train_series)
    (rank,) = trained.record.ranks
    assert caches.exists() == before, "LeRobot's files stay in the run"
    assert not [*trained.run_dir.glob("recorded-*")]
    (check,) = (check for check in rank.validity if check.feature == "data set")
    last = ENVIRONMENTS * STEPS - 1
    assert (check.verdict, check.found) == ("ok", f"frames 0, {last} are equal")
    columns = (rank.samples[name] for name in ("iteration_time_s", "lerobot.written_time_s", "lerobot.bytes_per_frame"))
    for iteration_s, written_s, size in zip(*columns, strict=True):
        assert 0 < (written_s or 0) < (iteration_s or 0)
        assert (size or 0) > 100


def test_frames_that_come_back_changed_are_a_fault(parts: dict[str, Any]) -> None:
    assert parts["read_back"] == [
        ["ok", "frames 0 are equal", None],
        ["failure", "differing: observation.images.camera of frame 1", "data_set_differs"],
    ]
