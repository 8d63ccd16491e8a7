"""TorchRL's collector alone and its pipeline. Its training: ``tests.tasks.test_worker``."""

from pathlib import Path

import psutil
import pytest

from suite.schema.record import Environment, RunRecord
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, pid_of, train
from tests.fixtures.runs.trained_runs import WorkerOf

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def collected(worker_of: WorkerOf, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Four rollouts of the control."""
    folder = tmp_path_factory.mktemp("collection")
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="collection", iterations=4)), folder)
    record = train(launch_of(worker_of(case), case, folder / "r0"), environment)
    assert (record.outcome, record.reason) == ("completed", None)
    assert record.workload is not None
    assert (record.workload["workload"], record.workload["env.compute_final_obs"]) == ("collection", True)
    return record


def test_collecting_alone_learns_nothing_and_steps_the_environments_within(collected: RunRecord) -> None:
    (rank,) = collected.ranks
    marked = {name: column[2] for name, column in rank.samples.items()}
    step_s, collection_s, iteration_s = (
        marked[f"{name}_time_s"] for name in ("environment_step", "collection", "iteration")
    )
    assert step_s is not None
    assert collection_s is not None
    assert iteration_s is not None
    assert 0.5 < step_s / collection_s < 1
    assert collection_s / iteration_s == pytest.approx(1, abs=0.01)
    assert marked["inference_time_s"] is None
    assert marked["all_reduce_calls"] == 0


@pytest.fixture(scope="module")
def carried(worker_of: WorkerOf, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Four rollouts collected in a process of Ray, of which nothing is left; ``train`` looks for processes."""
    folder = tmp_path_factory.mktemp("ray")
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="collection_ray", iterations=4)), folder)
    own = Path.home() / ".ray"
    before = own.exists()
    record = train(launch_of(worker_of(case), case, folder / "r0"), environment)
    assert (record.outcome, record.reason) == ("completed", None)
    assert own.exists() == before, "Ray's token stays in the run"
    assert [path.name for path in (folder / "r0" / "ray").iterdir()] == ["rank-0.jsonl"]
    return record


def test_rollouts_come_over_ray_from_a_process_that_steps_the_environments(carried: RunRecord) -> None:
    (rank,) = carried.ranks
    for iteration_s, collected_s in zip(
        rank.samples["iteration_time_s"], rank.samples["control.collected_time_s"], strict=True
    ):
        assert iteration_s is not None
        assert collected_s is not None
        assert 0 < collected_s < iteration_s
    step_s, collected_s = rank.samples["environment_step_time_s"][2], rank.samples["control.collected_time_s"][2]
    assert step_s is not None
    assert collected_s is not None
    assert 0.5 < step_s / collected_s < 1
    assert rank.settings["versions.ray"] is not None


def test_ray_listens_on_this_machine_alone_and_ends_with_a_killed_rank(
    worker_of: WorkerOf, environment: Environment, tmp_path: Path
) -> None:
    """``train`` looks for processes that are left."""
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="collection_ray", iterations=100_000)), tmp_path)
    launch = launch_of(worker_of(case), case, tmp_path / "r0")
    ears: set[str] = set()

    def look_and_kill(iterations: int) -> None:
        if iterations and not ears:
            rank = psutil.Process(pid_of(Path(launch.run_dir), 0))
            for process in (rank, *rank.children(recursive=True)):
                sockets = process.net_connections("tcp")
                ears.update(one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN)
            rank.kill()

    record = train(launch, environment, on_progress=look_and_kill)
    assert record.outcome == "crashed"
    assert ears <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert ears


def test_it_is_the_work_of_collecting_here(collected: RunRecord, carried: RunRecord) -> None:
    here, there = collected.workload, carried.workload
    assert here is not None
    assert there is not None
    assert {**here, "workload": "collection_ray"} == there
    checks = {(check.name, check.verdict) for rank in carried.ranks for check in rank.validity}
    assert {
        (f"physics state after {what}{where}", "ok")
        for what in ("training", "steps")
        for where in ("", ", in Ray's process")
    } <= checks


@pytest.fixture(scope="module")
def piped(worker_of: WorkerOf, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """Six rollouts of which one process makes each while the other one learns from the last."""
    folder = tmp_path_factory.mktemp("pipeline")
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="async_pipeline", iterations=6)), folder)
    record = train(launch_of(worker_of(case), case, folder / "r0"), environment)
    assert (record.outcome, record.reason) == ("completed", None)
    return record


def test_one_process_simulates_and_the_other_one_learns(piped: RunRecord) -> None:
    learner, simulator = piped.ranks
    assert (piped.case.num_envs, piped.case.frames_per_iteration) == (64, 64 * 16)
    assert learner.samples["environment_step_time_s"][2] is None
    assert 0 < (simulator.samples["environment_step_time_s"][2] or 0) < (simulator.samples["collection_time_s"][2] or 0)
    assert learner.samples["episode_length_mean"][-1] is not None
    assert simulator.samples["torchrl.learning_time_s"] == (None,) * 6
    assert {check.verdict for rank in piped.ranks for check in rank.validity if check.feature == "physics"} == {"ok"}
    assert learner.samples.keys() == simulator.samples.keys()


def test_both_end_with_the_same_weights_after_every_rollout_was_learned(piped: RunRecord) -> None:
    assert len({rank.parameters_sha256 for rank in piped.ranks}) == 1
    learner, _ = piped.ranks
    assert learner.samples["pipeline.staleness_updates"] == (0.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert learner.samples["pipeline.batches_since_sync"] == (1.0, 2.0, 1.0, 1.0, 1.0, 1.0)
