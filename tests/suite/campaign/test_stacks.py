"""Which worker a campaign has where its matrix names several stacks."""

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.schema.record import Device, Environment, Gpu, PlannedCase
from tests.fixtures.runs.asked_options import options_with

GPUS = tuple(Gpu(index=index, name="Example GPU", memory_gb=None, compute_capability=None) for index in range(4))


def planned(environment: Environment, *, device: Device = "cuda", **options: object) -> Campaign:
    gpus = GPUS if device == "cuda" else ()
    return make_plan(
        Campaign(
            options=options_with(matrix="physx", **options),
            console=Console(file=io.StringIO()),
            machine=replace(environment, gpus=gpus),
            device=device,
            resources=Resources(nnodes=1, gpus_per_node=len(gpus), cpus_per_node=16),
        )
    )


def refused(items: Sequence[PlannedCase]) -> set[str]:
    return {item.case.stack for item in items if item.infeasible}


def test_one_worker_runs_both_physics_engines_in_one_campaign(environment: Environment) -> None:
    campaign = planned(environment)
    assert campaign.stack == "ovphysx"
    assert {item.case.stack for item in campaign.planned} == {"kitless", "ovphysx"}
    assert refused(campaign.planned) == set()
    counted = {
        (item.case.task, item.case.rl_library, item.case.stack, item.case.world_size) for item in campaign.planned
    }
    assert len(counted) == 2 * 2 * 2 * 3  # and a twin of each baseline
    presets = {item.case.stack: item.case.presets for item in campaign.planned}
    assert presets == {"kitless": (), "ovphysx": ("presets=ovphysx",)}


@pytest.mark.parametrize(("chosen", "stacks"), [("kitless", {"kitless"}), ("ovphysx", {"ovphysx"})])
def test_a_chosen_stack_is_the_only_one(environment: Environment, chosen: str, stacks: set[str]) -> None:
    campaign = planned(environment, stack=chosen)
    assert campaign.stack == chosen
    assert {item.case.stack for item in campaign.planned} == stacks
    assert refused(campaign.planned) == set()


def test_where_physx_cannot_run_it_is_refused_with_what_it_needs(environment: Environment) -> None:
    campaign = planned(environment, device="cpu")
    assert campaign.stack == "kitless"
    assert "ovphysx" in refused(campaign.planned)
    in_containers = planned(environment, launcher="container")
    assert in_containers.stack == "kitless"  # an image holds one stack
    assert refused(in_containers.planned) == {"ovphysx"}


def test_narrowing_does_not_change_the_worker_of_a_campaign(environment: Environment) -> None:
    campaign = planned(environment, case_globs=("*kitless*",))
    assert campaign.stack == "ovphysx"
    assert {item.case.stack for item in campaign.planned} == {"kitless"}
