"""Which cases can run here, and what they cost."""

from collections.abc import Collection
from dataclasses import replace
from typing import get_args

import pytest

from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.schema.record import Case, Device, PlannedCase, Stack

CATALOG = load_catalog()
HAND = "Isaac-Reorient-Cube-Shadow-Camera-Direct"

ANT = Case(
    case_id="ant/rl_games-kitless-n2048-1x2",
    series="ant",
    scaling="weak",
    task="Isaac-Ant",
    rl_library="rl_games",
    stack="kitless",
    device="cuda",
    nnodes=1,
    nproc_per_node=2,
    num_envs=1024,
    num_envs_global=2048,
    num_steps_per_env=16,
    iterations=60,
    minibatch_rule="fixed_minibatch",
    minibatch_size=16384,
    optimiser_steps=4,
    seed=42,
    assets="offline",
)
RSL = replace(ANT, rl_library="rsl_rl", num_steps_per_env=32, minibatch_size=8192, optimiser_steps=20)

CARTPOLE = replace(
    RSL, task="Isaac-Cartpole-Direct", rl_library="torchrl", nproc_per_node=1, num_envs_global=1024,
    num_steps_per_env=16, minibatch_size=4096,
)  # fmt: skip


def planned(
    case: Case,
    *,
    gpus: int = 8,
    cpus: int = 16,
    nnodes: int = 1,
    device: Device | None = None,
    stacks: Collection[Stack] = get_args(Stack),
    catalog: Catalog = CATALOG,
) -> PlannedCase:
    [result] = plan(
        [case],
        resources=Resources(nnodes=nnodes, gpus_per_node=gpus, cpus_per_node=cpus),
        device=device or case.device,
        available_stacks=stacks,
        rounds=3,
        catalog=catalog,
    )
    return result


@pytest.mark.parametrize("case", [ANT, RSL, CARTPOLE, replace(ANT, device="cpu"), replace(ANT, stack="ovphysx")])
def test_what_fits_is_feasible(case: Case) -> None:
    assert planned(case).infeasible is None


@pytest.mark.parametrize(
    ("case", "named"),
    [
        (replace(ANT, device="cpu", nproc_per_node=32, num_envs=64, minibatch_size=1024), "32 CPU cores"),
        (replace(ANT, nnodes=2, num_envs=512, minibatch_size=8192), "2 nodes"),
        (replace(ANT, num_envs_global=2049), "2049 environments"),
        (replace(ANT, minibatch_size=10000), "needs minibatches of 8192 or 16384"),
        (replace(RSL, minibatch_size=20000, optimiser_steps=5), "needs minibatches of 16384 or 32768"),
        (replace(ANT, stack="ovphysx", device="cpu"), "needs cuda"),
        (replace(RSL, stack="ovphysx", task=HAND), "Isaac-Cartpole-Direct, Isaac-Ant"),
        (replace(ANT, task=HAND, rl_library="skrl"), "needs rl_games or rsl_rl"),
        (replace(ANT, rl_library="sb3"), "needs the topology 1x1"),
        (replace(CARTPOLE, rl_library="rsl_rl", workload="all_reduce"), "needs 2 ranks"),
        (replace(ANT, rl_library="rsl_rl", workload="rendering"), "needs a task with one"),
        (replace(CARTPOLE, workload="async_pipeline", nproc_per_node=4), "needs the topology 1x1 or 1x2"),
        (
            replace(CARTPOLE, num_envs=255, num_envs_global=255, num_steps_per_env=6, minibatch_size=382),
            "needs minibatches of 306 or 510",
        ),
        (replace(CARTPOLE, workload="collection", rl_library="rsl_rl"), "needs torchrl"),
        (replace(CARTPOLE, task=HAND, workload="policy_rollout"), "needs lerobot"),
        (replace(CARTPOLE, workload="dataset_recording", rl_library="lerobot"), "camera"),
        (replace(CARTPOLE, rl_library="lerobot"), "no agent for lerobot"),
    ],
)
def test_each_reason_for_refusal(case: Case, named: str) -> None:
    result = planned(case)
    assert result.infeasible is not None
    assert named in result.infeasible
    lacks_hardware = result.infeasible.startswith("needs ")
    assert (result.estimated_wall_s is not None) == lacks_hardware
    assert (result.estimated_gpu_minutes is not None) == lacks_hardware


@pytest.mark.parametrize(("stack", "needed"), [("kitless", ""), ("ovphysx", "ovstage"), ("isaacsim", "isaacsim")])
def test_a_stack_that_is_not_installed(stack: Stack, needed: str) -> None:
    assert needed in (planned(replace(ANT, stack=stack), stacks=()).infeasible or "")


def test_all_reasons_are_given_and_gpus_count_per_node() -> None:
    case = replace(ANT, nnodes=2, nproc_per_node=4, num_envs=256, minibatch_size=4096)
    assert planned(case, gpus=4, nnodes=2).infeasible is None
    reasons = planned(case, gpus=2).infeasible or ""
    assert "2 nodes" in reasons
    assert "4 GPUs" in reasons


def test_an_estimate_is_start_up_plus_iterations_for_every_round_and_gpu() -> None:
    cost = CATALOG.tasks["Isaac-Ant"].costs[0]
    result = planned(ANT)
    assert result.estimated_wall_s == pytest.approx(cost.start_up_s + 60 * cost.iteration_s)
    assert result.estimated_wall_s is not None
    assert result.estimated_gpu_minutes == pytest.approx(3 * 2 * result.estimated_wall_s / 60)
    assert planned(replace(ANT, device="cpu")).estimated_gpu_minutes == 0
