"""Which results form a group, and the speed-ups and efficiencies of its points."""

from dataclasses import replace

import pytest

from reports.analysis import case_rows
from reports.scaling_groups import (
    point_efficiency,
    point_speedup,
    scaling_groups,
)
from reports.verdicts import verdict
from suite.schema.record import Case, CaseResult
from suite.schema.transport import Transport
from tests.fixtures.results.generated_results import full_results, make_case, make_record, make_result


def test_speedups_of_paired_rounds_know_that_they_shared_a_disturbance() -> None:
    # The second round was disturbed: everything took twice as long, and yet two ranks were twice as fast.
    results = [make_result(make_case(world_size=ranks), 0.8 / ranks, 1.6 / ranks, 0.8 / ranks) for ranks in (1, 2)]
    (group,) = scaling_groups(results)
    assert point_speedup(group, group.points[1]).interval == (2.0, 2.0)
    assert point_efficiency(group, group.points[1]).interval == (1.0, 1.0)
    case = make_case(world_size=2)
    other_rounds = tuple(
        make_record(case, index=index, iteration_time_s=time_s)
        for index, time_s in zip((0, 1, 3), (0.4, 0.8, 0.4), strict=True)
    )
    (unpaired,) = scaling_groups([results[0], CaseResult(case=case, rounds=other_rounds)])
    interval = point_speedup(unpaired, unpaired.points[1]).interval
    assert interval is not None
    assert interval[0] < 2 < interval[1]


def test_figures_of_points_are_over_a_baseline_of_two_ranks() -> None:
    """Computed by hand: 128 environments x 16 steps are 2048 frames; 0.8 s / 0.5 s is 1.6 times, 2 is ideal."""
    results = [
        make_result(make_case(world_size=ranks), *times_s) for ranks, times_s in ((2, [0.8] * 3), (4, [0.5] * 3))
    ]
    (group,) = scaling_groups(results)
    assert group.points[1].total_fps == pytest.approx(2048 / 0.5)
    assert point_speedup(group, group.points[1]).value == pytest.approx(1.6)
    efficiency = point_efficiency(group, group.points[1])
    assert (efficiency.value, *(efficiency.interval or ())) == pytest.approx((0.8, 0.8, 0.8))


def test_groups_hold_what_differs_in_ranks_only() -> None:
    groups = scaling_groups(full_results())
    assert [(group.series, group.curve) for group in groups] == [
        ("ant-weak", "rl_games"),
        ("ant-weak", "rsl_rl"),
        ("cartpole-strong", "rl_games"),
        ("cartpole-strong", "rsl_rl"),
    ]
    assert [len(group.points) for group in groups] == [4, 4, 4, 4]  # without what was skipped


def skipped(case: Case) -> CaseResult:
    return CaseResult(case=case, rounds=(make_record(case, outcome="skipped", reason="this machine has 1 GPU"),))


def test_a_baseline_that_was_not_tried_is_replaced_by_no_other() -> None:
    """A page once gave no efficiency in its rows, and below them a verdict with two ranks as baseline."""
    measured = [make_result(make_case(world_size=ranks), *[0.8 / ranks] * 3) for ranks in (2, 4)]
    results = [skipped(make_case()), *measured, skipped(make_case(world_size=8))]
    (group,) = scaling_groups(results)
    assert [(point.world_size, bool(point.times_s)) for point in group.points] == [(1, False), (2, True), (4, True)]
    assert (verdict(group).word, verdict(group).reason) == ("inconclusive", "no round of 1 rank completed")
    assert {row.speedup for row in case_rows(results)} == {None}
    assert scaling_groups([skipped(make_case(world_size=ranks)) for ranks in (1, 2)]) == ()


def test_a_curve_is_called_as_in_the_rows_of_a_page_whatever_was_skipped() -> None:
    """The first page finds the verdict of a row by this name."""
    results = [make_result(make_case(world_size=ranks), *[0.8 / ranks] * 3) for ranks in (1, 2)]
    results.append(skipped(make_case(num_envs_global=256)))
    (group,) = scaling_groups(results)
    assert group.curve == "rsl_rl, 128 environments"
    assert {row.curve for row in case_rows(results) if row.rounds_completed} == {group.curve}


def test_of_two_topologies_with_as_many_ranks_the_one_with_fewer_nodes_is_taken() -> None:
    results = [make_result(make_case(), 1.0), make_result(make_case(world_size=4, nnodes=2), 0.9)]
    results.append(make_result(make_case(world_size=4), 0.3))
    (group,) = scaling_groups(results)
    assert [dict(point.times_s) for point in group.points] == [{0: 1.0}, {0: 0.3}]


def test_emulated_nodes_are_no_scaling() -> None:
    transport = Transport(library="nccl", emulated=True)
    two_nodes = make_result(make_case(world_size=4, nnodes=2), 0.9)
    emulated = replace(two_nodes, rounds=tuple(replace(record, transport=transport) for record in two_nodes.rounds))
    (group,) = scaling_groups([make_result(make_case(), 1.0), emulated])
    assert [point.world_size for point in group.points] == [1]
    (group,) = scaling_groups([make_result(make_case(), 1.0), two_nodes])
    assert [point.world_size for point in group.points] == [1, 4]


def test_twins_of_an_a_a_run_are_no_group() -> None:
    (group,) = scaling_groups([make_result(make_case(), 1.0), make_result(make_case(variant="aa"), 1.2)])
    assert group.curve == "rsl_rl"
    assert group.twin is not None
    assert dict(group.twin.times_s) == {0: 1.2}
    assert group.from_twin is not None
    assert [dict(point.times_s) for point in group.from_twin.points] == [{0: 1.2}]
