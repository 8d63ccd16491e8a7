"""The matrices of ``tasks/matrices``: what is in them, and that it can run on the machines that they are for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest

from reports.data.facts import iteration_of
from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix, matrix_names
from suite.matrix.own_worker import PINS_OF
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.matrix.selection import on_nodes_of
from suite.schema.record import Case, Device, PlannedCase, RlLibrary
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.series_model import MIN_FREEDOM
from suite.statistics.twins import ratios_of, with_twins
from tests.fixtures.runs.camera_cartpole import CAMERA_CARTPOLE, catalog_with_camera

CATALOG = load_catalog()
WITH_CAMERA = catalog_with_camera()


def cases_of(name: str, device: Device = "cuda") -> list[Case]:
    return expand(on_nodes_of(load_matrix(name, WITH_CAMERA), 8), WITH_CAMERA, device=device, assets="offline")


def planned(cases: Sequence[Case], gpus: int, *, nnodes: int = 1, cpus: int = 16, rounds: int = 1) -> list[PlannedCase]:
    return plan(
        cases,
        resources=Resources(nnodes=nnodes, gpus_per_node=gpus, cpus_per_node=cpus),
        available_stacks=["kitless"],
        rounds=rounds,
        catalog=WITH_CAMERA,
    )


@pytest.mark.parametrize("name", matrix_names())
def test_the_matrices_load_with_unique_ids(name: str) -> None:
    cases = cases_of(name)
    assert cases
    assert len({case.case_id for case in cases}) == len(cases)


def test_every_case_of_full_is_decided_with_the_case_on_the_fewest_ranks_of_its_curve() -> None:
    cases = with_twins(cases_of("full"))

    def curve_of(case: Case) -> tuple[str, ...]:
        return case.series, case.rl_library, case.minibatch_rule

    for case in cases:
        fewest = min(other.world_size for other in cases if curve_of(other) == curve_of(case))
        baselines = {(curve_of(base), base.world_size) for _, base in ratios_of(case, cases)}
        assert baselines == {(curve_of(case), fewest)}


def test_smoke_has_every_task_on_one_and_two_ranks_and_every_library() -> None:
    cases = cases_of("smoke")
    assert {(case.task, case.world_size) for case in cases} == {
        (task, world_size) for task in CATALOG.tasks for world_size in (1, 2)
    }
    assert {case.rl_library for case in cases} == set(get_args(RlLibrary)) - PINS_OF.keys()


def test_first_is_one_curve_of_full_on_one_gpu_and_on_all_and_one_gpu_filled() -> None:
    matrix = load_matrix("first", CATALOG)
    assert (matrix.rounds, matrix.precision, matrix.warm_up) == (MIN_FREEDOM + 1, None, True)
    of_full = {case.case_id: case for case in cases_of("full")}
    for gpus, sizes in ((1, [1]), (4, [1, 4]), (6, [1, 6]), (8, [1, 8])):
        *curve, filled = expand(on_nodes_of(matrix, gpus), CATALOG, device="cuda", assets="offline")
        assert [case.world_size for case in curve] == sizes
        assert {(case.series, case.rl_library) for case in curve} == {("ant-weak", "rl_games")}
        assert (filled.series, filled.rl_library, filled.num_envs) == ("ant-envs", "rl_games", 8192)
        assert (filled.task, filled.iterations) == (curve[0].task, curve[0].iterations)
        for case in curve if gpus != 6 else curve[:1]:  # 6 GPUs are not in full
            same = replace(of_full[case.case_id], timeout_s=0, iterations=case.iterations)
            assert replace(case, timeout_s=0) == same  # with fewer iterations, to take minutes


def test_accept_has_cases_that_are_published_under_the_same_names() -> None:
    matrix = load_matrix("accept", CATALOG)
    assert (matrix.rounds, matrix.precision, matrix.a_a) == (MIN_ROUNDS_FOR_INTERVAL, None, False)
    of_full = {case.case_id: case for case in cases_of("full")}
    of_accept = {case.case_id: case for case in cases_of("accept")}
    assert of_accept.keys() - of_full.keys() == {"cartpole-per-gpu/rsl_rl-kitless-n4096-1x1"}
    for name in of_accept.keys() & of_full.keys():
        same = replace(of_full[name], timeout_s=0, iterations=of_accept[name].iterations)
        assert replace(of_accept[name], timeout_s=0) == same


def test_short_is_full_on_one_to_eight_gpus_in_fewer_iterations() -> None:
    of_full = {case.case_id: case for case in cases_of("full")}
    of_short = cases_of("short")
    for case in of_short:
        same = replace(of_full[case.case_id], timeout_s=0, hang_timeout_s=0, iterations=case.iterations)
        assert replace(case, timeout_s=0, hang_timeout_s=0) == same
    sizes: dict[tuple[str, str], list[int]] = {}
    for case in of_short:
        sizes.setdefault((case.series, case.rl_library), []).append(case.world_size)
    assert sizes == {
        **{(name, "rl_games"): [1, 2, 4, 8] for name in ("cartpole-strong", "cartpole-per-gpu", "ant-weak")},
        **{(name, "rsl_rl"): [1, 2, 4, 8] for name in ("ant-weak", "shadow-horizontal", "shadow-vertical")},
        **{(f"control-{name}-all-reduce", "rsl_rl"): [2, 4, 8] for name in ("cartpole", "shadow")},
    }


@pytest.mark.parametrize(
    ("name", "gpus", "cold_s", "seconds"), [("first", 8, 0, (0, 540)), ("accept", 1, 110, (540, 660))]
)
def test_first_and_accept_take_minutes(name: str, gpus: int, cold_s: float, seconds: tuple[float, float]) -> None:
    """``cold_s`` is the most that kernels of one size add to a first process, by the catalog."""
    matrix = load_matrix(name, CATALOG)
    cases = expand(on_nodes_of(matrix, gpus), CATALOG, device="cuda", assets="offline")
    here = [item for item in planned(cases, gpus, rounds=matrix.rounds) if not item.infeasible]
    warm_s = sum((item.estimated_wall_s or 1e9) * item.rounds for item in here)
    sizes = {(item.case.task, item.case.num_envs) for item in here}
    assert seconds[0] <= warm_s + cold_s * len(sizes) <= seconds[1]


@pytest.mark.parametrize("name", ["full", "smoke"])
def test_environments_and_steps_are_constant_over_world_sizes(name: str) -> None:
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases_of(name):
        groups.setdefault((case.series, case.rl_library, case.minibatch_rule), []).append(case)
    for (_, _, rule), cases in groups.items():
        assert len({case.num_envs_global if case.scaling == "strong" else case.num_envs for case in cases}) == 1
        assert len({case.optimiser_steps if rule == "fixed_updates" else case.minibatch_size for case in cases}) == 1
        assert all(case.num_envs * case.world_size == case.num_envs_global for case in cases)


@pytest.mark.parametrize(
    ("name", "device", "gpus", "cpus", "nnodes"),
    [
        ("full", "cuda", 8, 2, 2),
        ("accept", "cuda", 8, 8, 1),
        ("short", "cuda", 8, 8, 1),
        ("smoke", "cuda", 2, 2, 1),
        ("smoke", "cpu", 0, 2, 1),
        ("env-sweep", "cuda", 1, 1, 1),
        ("open", "cuda", 4, 16, 1),
        ("start-up", "cuda", 1, 8, 1),
        ("sb3", "cuda", 1, 16, 1),
        ("skrl-jax", "cuda", 2, 16, 1),
        ("torchrl", "cuda", 2, 16, 1),
        ("lerobot", "cuda", 2, 16, 1),
    ],
)
def test_they_are_feasible_on_the_machines_they_are_for(
    name: str, device: Device, gpus: int, cpus: int, nnodes: int
) -> None:
    results = planned(cases_of(name, device), gpus, nnodes=nnodes, cpus=cpus)
    assert {result.case.case_id: result.infeasible for result in results if result.infeasible} == {}
    assert (CAMERA_CARTPOLE in {result.case.task for result in results}) == (name in ("torchrl", "lerobot"))


def test_deterministic_has_every_case_both_ways_with_one_seed_and_nothing_else_changed() -> None:
    cases = cases_of("deterministic")
    assert not load_matrix("deterministic", CATALOG).seed_per_round
    usual, deterministic = ([case for case in cases if case.deterministic is way] for way in (False, True))
    assert {case.rl_library for case in usual} == {"rl_games", "rsl_rl"}
    asked = {iteration_of(replace(case, deterministic=True, division="open")) for case in usual}
    assert asked == {iteration_of(case) for case in deterministic}
    assert len(asked) == len(usual) == len(deterministic)
