"""What skrl does in real training with JAX alone; what all libraries do is in ``tests/tasks/test_worker.py``."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from suite.schema.record import Environment
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train
from tests.fixtures.runs.trained_runs import WHOLE_BATCH, TrainedRun, WorkerOf

pytestmark = pytest.mark.worker


def test_jax_trains_two_networks_whose_gradients_are_reduced_at_each_optimiser_step(trained_run: TrainedRun) -> None:
    trained = trained_run("skrl_jax-1x2")
    workload = trained.record.workload
    assert workload is not None
    assert workload["agent.models.separate"] is True  # the agent itself says False
    for rank in trained.record.ranks:
        assert (rank.settings["jax_platform"], rank.settings["versions.jax"]) == ("cpu", "0.12.0.1")
        assert rank.settings["xla_flags"] == os.environ.get("XLA_FLAGS")
        assert rank.samples["all_reduce_calls"][2] == 2 * trained.case.optimiser_steps


def test_a_rank_that_fails_ends_the_run_long_before_jax_would(
    worker_of: WorkerOf, environment: Environment, tmp_path: Path
) -> None:
    """It gets an exception; JAX would let it wait for the others, for longer than this run may take.

    The processes find each other although the machine has a proxy, which does not answer.
    """
    series = cartpole("skrl_jax", topologies=("1x2",), minibatch_size=WHOLE_BATCH, iterations=100_000, timeout_s=240)
    (case,) = cases_of(matrix_of(series), tmp_path)
    launch = launch_of(worker_of(case), case, tmp_path / "r0")
    argv = ["tests.tasks.probes.failing_jax_rank" if part == "tasks.worker" else part for part in launch.argv]
    launch = replace(launch, argv=tuple(argv), env={**launch.env, "http_proxy": "http://127.0.0.1:9"})
    record = train(launch, environment)
    assert (record.outcome, record.reason) == ("crashed", "rank 1: RuntimeError: as asked")
    assert [rank.num_iterations >= 2 for rank in record.ranks] == [True, True]
