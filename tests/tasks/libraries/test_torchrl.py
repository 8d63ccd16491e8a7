"""TorchRL's collector alone, and how episodes are kept. Its training is among those of ``tests.tasks.test_worker``."""

import pytest

from suite.install.worker import Worker
from suite.schema.record import Environment, RankRecord
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train
from tests.fixtures.runs.worker_probes import probe

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def collected(torchrl_worker: Worker, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> RankRecord:
    """Four rollouts of the control."""
    folder = tmp_path_factory.mktemp("collection")
    (case,) = cases_of(matrix_of(cartpole("torchrl", workload="collection", iterations=4)), folder)
    record = train(launch_of(torchrl_worker, case, folder / "r0"), environment)
    assert (record.outcome, record.reason) == ("completed", None)
    assert record.workload is not None
    assert (record.workload["workload"], record.workload["env.compute_final_obs"]) == ("collection", True)
    (rank,) = record.ranks
    return rank


def test_collecting_alone_learns_nothing_and_steps_the_environments_within(collected: RankRecord) -> None:
    marked = {name: column[2] for name, column in collected.samples.items()}
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


def test_its_environment_is_open_for_the_checks_after_the_last_rollout(collected: RankRecord) -> None:
    assert {check.verdict for check in collected.validity if check.feature == "physics"} == {"ok"}


def test_episodes_are_added_up_over_rollouts(worker: Worker) -> None:
    assert probe(worker, "episodes") == {"none": [None, None], "one": [3.0, 2.0], "both": [16.5, 3.5]}
