"""TorchRL's collector alone and its pipeline. Its training: ``tests.tasks.test_worker``."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from suite.schema.record import Environment, RunRecord
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, pid_of, train
from tests.fixtures.runs.trained_runs import TrainSeries, WorkerOf

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def collected(train_series: TrainSeries) -> RunRecord:
    return train_series(cartpole("torchrl", workload="collection", iterations=4)).record


def test_collecting_alone_learns_nothing_and_steps_the_environments_within(collected: RunRecord) -> None:
    (rank,) = collected.ranks
    marked = {name: column[2] for name, column in rank.samples.items()}
    step_s, collection_s, iteration_s = (
        marked[f"{name}_time_s"] or 0 for name in ("environment_step", "collection", "iteration")
    )
    assert 0.5 < step_s / collection_s < 1
    assert collection_s / iteration_s == pytest.approx(1, abs=0.01)
    assert marked["inference_time_s"] is None
    assert marked["all_reduce_calls"] == 0


def test_rollouts_come_over_ray_from_a_process_that_steps_the_environments(
    train_series: TrainSeries, collected: RunRecord
) -> None:
    own = Path.home() / ".ray"
    before = own.exists()
    carried = train_series(cartpole("torchrl", workload="collection_ray", iterations=4))
    assert own.exists() == before, "Ray's token stays in the run"
    assert [path.name for path in (carried.run_dir / "ray").iterdir()] == ["rank-0.jsonl"]
    (rank,) = carried.record.ranks
    assert rank.settings["versions.ray"] is not None
    collected_s = [time_s or 0 for time_s in rank.samples["control.collected_time_s"]]
    for in_ray_s, iteration_s in zip(collected_s, rank.samples["iteration_time_s"], strict=True):
        assert 0 < in_ray_s < (iteration_s or 0)
    assert 0.5 < (rank.samples["environment_step_time_s"][2] or 0) / collected_s[2] < 1
    assert collected.workload is not None
    assert collected.workload["env.compute_final_obs"] is True
    assert {
        **collected.workload,
        "workload": "collection_ray",
    } == carried.record.workload  # it is the work of collecting here
    assert {(check.name, check.verdict) for check in rank.validity} >= {
        (f"physics state after {what}{where}", "ok")
        for what in ("training", "steps")
        for where in ("", ", in Ray's process")
    }


def test_ray_listens_on_this_machine_alone_and_ends_with_a_killed_rank(
    worker_of: WorkerOf, environment: Environment, tmp_path: Path
) -> None:
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="collection_ray", iterations=100_000)), tmp_path)
    launch = launch_of(worker_of(case), case, tmp_path / "r0")
    argv = ["tests.tasks.probes.asking_ray_rank" if part == "tasks.worker" else part for part in launch.argv]
    ears: set[str] = set()

    def look_and_kill(iterations: int) -> None:
        if iterations and not ears:
            rank = psutil.Process(pid_of(Path(launch.run_dir), 0))
            for process in (rank, *rank.children(recursive=True)):
                sockets = process.net_connections("tcp")
                ears.update(socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN)
            rank.kill()

    record = train(replace(launch, argv=tuple(argv)), environment, on_progress=look_and_kill)
    assert record.outcome == "crashed"
    assert ears <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert ears


def test_a_pipeline_simulates_and_learns_at_once_and_both_ends_have_the_same_weights(train_series: TrainSeries) -> None:
    piped = train_series(cartpole("torchrl", workload="async_pipeline", iterations=6)).record
    learner, simulator = piped.ranks
    assert (piped.case.num_envs, piped.case.frames_per_iteration) == (64, 64 * 16)
    assert learner.samples["environment_step_time_s"][2] is None
    assert 0 < (simulator.samples["environment_step_time_s"][2] or 0) < (simulator.samples["collection_time_s"][2] or 0)
    assert learner.samples["episode_length_mean"][-1] is not None
    assert simulator.samples["torchrl.learning_time_s"] == (None,) * 6
    assert {check.verdict for rank in piped.ranks for check in rank.validity if check.feature == "physics"} == {"ok"}
    assert learner.samples.keys() == simulator.samples.keys()
    assert len({rank.parameters_sha256 for rank in piped.ranks}) == 1
    assert learner.samples["pipeline.staleness_updates"] == (0.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert learner.samples["pipeline.batches_since_sync"] == (1.0, 2.0, 1.0, 1.0, 1.0, 1.0)
