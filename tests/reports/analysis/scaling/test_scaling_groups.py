"""Which results form a group, and the speed-ups and efficiencies of its points."""

import math
from dataclasses import replace

import pytest

from reports.analysis.rows import case_rows
from reports.analysis.scaling.scaling_groups import scaling_groups
from suite.schema.record import Case, CaseResult
from suite.schema.transport import Transport
from tests.fixtures.results.generated_results import full_results, make_case, make_record, make_result


def test_a_speedup_is_the_centre_of_its_interval() -> None:
    results = [make_result(make_case(world_size=ranks), 0.8 / ranks, 1.6 / ranks, 0.8 / ranks) for ranks in (1, 2)]
    (group,) = scaling_groups(results)
    speedup = group.points[1].speedup
    assert speedup is not None
    assert speedup.interval is not None
    assert speedup.value == pytest.approx(2.0)
    assert math.prod(speedup.interval) == pytest.approx(2.0**2)
    assert speedup.interval[0] < 2.0


def test_figures_of_points_are_over_a_baseline_of_two_ranks() -> None:
    """Computed by hand: 128 environments x 16 steps are 2048 frames; 0.8 s / 0.5 s is 1.6 times, 2 is ideal."""
    results = [
        make_result(make_case(world_size=ranks), *times_s) for ranks, times_s in ((2, [0.8] * 3), (4, [0.5] * 3))
    ]
    (group,) = scaling_groups(results)
    assert group.points[1].total_fps == pytest.approx(2048 / 0.5)
    speedup = group.points[1].speedup
    assert speedup is not None
    assert (speedup.value, *(speedup.interval or ())) == pytest.approx((1.6, 1.6, 1.6))


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
    measured = [make_result(make_case(world_size=ranks), *[0.8 / ranks] * 3) for ranks in (2, 4)]
    results = [skipped(make_case()), *measured, skipped(make_case(world_size=8))]
    (group,) = scaling_groups(results)
    assert [(point.world_size, bool(point.times_s)) for point in group.points] == [(1, False), (2, True), (4, True)]
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


def test_a_repeat_of_the_baseline_is_no_point_and_counts_as_the_baseline() -> None:
    results = [make_result(make_case(world_size=ranks), *[time_s] * 3) for ranks, time_s in ((1, 1.0), (2, 0.5))]
    repeat = make_result(make_case(variant="aa"), 1.44, 1.44, 1.44)
    (group,) = scaling_groups([*results, repeat])
    assert group.curve == "rsl_rl"
    assert [dict(point.times_s) for point in group.points] == [
        dict.fromkeys(range(3), 1.0),
        dict.fromkeys(range(3), 0.5),
    ]
    speedup = group.points[1].speedup
    assert speedup is not None
    assert speedup.value == pytest.approx(1.2 / 0.5)  # 1.2 is the geometric mean of 1 and 1.44
