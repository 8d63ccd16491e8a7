"""How JAX and skrl know their processes, and what skrl does in real training with JAX alone (else: ``test_worker``)."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.schema.record import Environment
from tasks.libraries.jax_processes import variables
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train
from tests.fixtures.runs.trained_runs import WHOLE_BATCH, TrainedRun, WorkerOf


@pytest.mark.worker
def test_jax_trains_two_networks_whose_gradients_are_reduced_at_each_optimiser_step(trained_run: TrainedRun) -> None:
    trained = trained_run("skrl_jax-1x2")
    workload = trained.record.workload
    assert workload is not None
    assert workload["agent.models.separate"] is True  # the agent itself says False
    for rank in trained.record.ranks:
        assert (rank.settings["jax_platform"], rank.settings["versions.jax"]) == ("cpu", "0.12.0.1")
        assert rank.settings["xla_flags"] == os.environ.get("XLA_FLAGS")
        assert rank.samples["all_reduce_calls"][2] == 2 * trained.case.optimiser_steps


@pytest.mark.worker
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


JOINING = {
    "JAX_COORDINATOR_ADDR": "node-0", "JAX_COORDINATOR_PORT": "4321", "JAX_WORLD_SIZE": "8", "JAX_RANK": "5",
    "JAX_LOCAL_RANK": "1", "JAX_ENABLE_PREEMPTION_SERVICE": "false", "no_grpc_proxy": "node-0",
}  # fmt: skip


def of(rank: int = 0, *, world_size: int = 1, on_gpu: bool = True, xla_flags: str | None = None) -> dict[str, str]:
    """Variables of a rank, four of which are on a node."""
    ranks: Any = SimpleNamespace(rank=rank, local_rank=rank % 4, world_size=world_size)
    coordinator = ("node-0", 4321) if world_size > 1 else None
    return variables(ranks, coordinator, on_gpu=on_gpu, threads=6, xla_flags=xla_flags)


def test_a_rank_on_a_second_node_has_its_own_gpu_and_the_address_of_rank_0() -> None:
    values = of(5, world_size=8)
    assert values.items() >= JOINING.items()
    assert values["JAX_CUDA_VISIBLE_DEVICES"] == "1"


def test_jax_does_not_train_on_the_cpu_where_a_gpu_is_asked_for() -> None:
    assert of()["JAX_PLATFORMS"].split(",")[0] == "cuda"
    assert of(on_gpu=False)["JAX_PLATFORMS"] == "cpu"


def test_several_gpus_reduce_by_nccl_and_choose_the_same_kernels_unless_the_user_decides_otherwise() -> None:
    flags = "--xla_gpu_experimental_use_collective_kernels= --xla_gpu_deterministic_ops=true"
    assert of(world_size=2)["XLA_FLAGS"] == flags
    assert of(world_size=2, xla_flags="--mine")["XLA_FLAGS"] == f"{flags} --mine"
    assert "XLA_FLAGS" not in of() | of(world_size=2, on_gpu=False)
