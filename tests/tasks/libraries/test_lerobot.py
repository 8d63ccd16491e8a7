"""A policy of LeRobot acting, and LeRobot's data set writer, for real on the CPU in Cartpole with a camera."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from suite.install.worker import Worker
from suite.schema.record import Environment, RunRecord
from tests.fixtures.runs.camera_cartpole import CAMERA_CARTPOLE, catalog_with_camera
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train
from tests.fixtures.runs.trained_runs import WorkerOf
from tests.fixtures.runs.worker_probes import probe

pytestmark = pytest.mark.worker

STEPS = 4
ENVIRONMENTS = 2

Run = Callable[[str], RunRecord]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lerobot")


@pytest.fixture(scope="module")
def run(worker_of: WorkerOf, environment: Environment, folder: Path) -> Run:
    def run_it(workload: str) -> RunRecord:
        series = cartpole(
            "lerobot", task=CAMERA_CARTPOLE, workload=workload, num_envs=ENVIRONMENTS, num_steps_per_env=STEPS,
        )  # fmt: skip
        (case,) = cases_of(matrix_of(series), folder, catalog_with_camera())
        record = train(launch_of(worker_of(case), case, folder / workload), environment)
        assert (record.outcome, record.reason) == ("completed", None)
        assert record.ranks[0].settings["versions.lerobot"] == "0.6.1"
        return record

    return run_it


def test_a_policy_chooses_every_action_and_its_calls_are_timed_in_marked_iterations(run: Run) -> None:
    (rank,) = run("policy_rollout").ranks
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


def test_what_is_recorded_comes_back_and_nothing_of_it_is_left(run: Run, folder: Path) -> None:
    caches = Path.home() / ".cache" / "huggingface"
    before = caches.exists()
    (rank,) = run("dataset_recording").ranks
    assert caches.exists() == before, "LeRobot's files stay in the run"
    assert not [*(folder / "dataset_recording").glob("recorded-*")]
    (check,) = (check for check in rank.validity if check.feature == "data set")
    last = ENVIRONMENTS * STEPS - 1
    assert (check.verdict, check.found) == ("ok", f"frames 0, {last} are equal")
    columns = (rank.samples[name] for name in ("iteration_time_s", "lerobot.written_time_s", "lerobot.bytes_per_frame"))
    for iteration_s, written_s, size in zip(*columns, strict=True):
        assert 0 < (written_s or 0) < (iteration_s or 0)
        assert (size or 0) > 100


def test_frames_that_come_back_changed_are_a_fault(worker: Worker) -> None:
    assert probe(worker, "lerobot_parts")["read_back"] == [
        ["ok", "frames 0 are equal", None],
        ["failure", "differing: observation.images.camera of frame 1", "data_set_differs"],
    ]
