import math
from dataclasses import replace
from statistics import variance

import pytest

from reports.analysis.learning_curves import learning_curve
from reports.analysis.rows import CaseRow, case_rows, own_wall_s, start_up_s
from suite.schema.record import Case, CaseResult, RankRecord
from suite.schema.turns import TurnsTaken
from suite.statistics.reduce import iteration_times_s
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_record,
    make_result,
)


def rows_by_ranks(results: list[CaseResult]) -> dict[int, CaseRow]:
    return {row.world_size: row for row in case_rows(results)}


def test_perfect_weak_scaling_has_efficiency_one() -> None:
    cases = [
        make_case("ant-weak", world_size=ranks, scaling="weak", num_envs_global=32 * ranks) for ranks in (1, 2, 4, 8)
    ]
    rows = rows_by_ranks([make_result(case, 0.5) for case in cases])
    assert [rows[ranks].speedup for ranks in (1, 2, 4, 8)] == [1, 2, 4, 8]
    assert {row.scaling_efficiency for row in rows.values()} == {1.0}


@pytest.mark.parametrize("serial", [0.0, 0.05, 0.5])
def test_strong_scaling_follows_amdahl(serial: float) -> None:
    rows = rows_by_ranks(
        [make_result(make_case(world_size=ranks), 2.0 * (serial + (1 - serial) / ranks)) for ranks in (1, 2, 8)]
    )
    for ranks, row in rows.items():
        amdahl = 1 / (serial + (1 - serial) / ranks)
        assert row.speedup == pytest.approx(amdahl)
        assert row.scaling_efficiency == pytest.approx(amdahl / ranks)


def test_baseline_is_the_smallest_world_size_there_is() -> None:
    rows = rows_by_ranks([make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (4, 2)])
    assert (rows[4].baseline_world_size, rows[4].speedup, rows[4].ideal_speedup) == (2, 2.0, 2.0)


def test_a_failed_baseline_is_not_replaced() -> None:
    failed = failed_result(make_case(world_size=1), outcome="oom", reason="out of memory")
    rows = rows_by_ranks([failed, *(make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (2, 4))])
    assert {row.speedup for row in rows.values()} == {None}
    assert {row.scaling_efficiency for row in rows.values()} == {None}
    assert rows[2].iteration_time_s == 0.5


@pytest.mark.parametrize(
    "change",
    [
        {"rl_library": "rl_games"},
        {"stack": "ovphysx"},
        {"device": "cuda"},
        {"minibatch_rule": "fixed_updates"},
        {"assets": "official"},
        {"num_envs_global": 256},
        {"variant": "tf32"},
    ],
)
def test_cases_that_differ_in_more_than_ranks_are_not_compared(change: dict[str, str | int]) -> None:
    other = make_case(world_size=2, **change)  # type: ignore[arg-type]
    rows = rows_by_ranks([make_result(make_case(), 1.0), make_result(other, 0.5)])
    assert rows[2].baseline_world_size == 2
    assert rows[2].speedup == 1.0


def test_one_failed_round_is_counted_and_the_others_measure() -> None:
    case = make_case()
    failure = make_record(case, index=1, outcome="crashed", reason="RuntimeError: no")
    rounds = (
        make_record(case, index=0, iteration_time_s=0.4),
        failure,
        make_record(case, index=2, iteration_time_s=0.9),
    )
    (row,) = case_rows([CaseResult(case=case, rounds=rounds)])
    assert row.outcome_counts == {"completed": 2, "crashed": 1}
    assert (row.rounds, row.rounds_completed) == (3, 2)
    assert row.iteration_time_s == pytest.approx(0.6)
    assert row.iteration_time_interval_s is None
    assert row.total_fps == pytest.approx(case.frames_per_iteration / 0.6)


def test_a_case_without_a_completed_round_has_no_numbers() -> None:
    (row,) = case_rows([failed_result(make_case(), outcome="skipped", reason="needs 2 GPUs")])
    assert row.iteration_time_s is row.total_fps is row.speedup is row.all_reduce_share is row.rank_skew is None


def test_the_share_of_all_reduce_is_of_the_iteration_time() -> None:
    (row,) = case_rows([make_result(make_case(world_size=2), 0.5)])
    assert row.all_reduce_share == pytest.approx(0.1)


def test_a_single_rank_has_neither_skew_nor_all_reduce() -> None:
    (row,) = case_rows([make_result(make_case(), 0.5)])
    assert row.rank_skew is None
    assert row.all_reduce_share is None


@pytest.mark.parametrize(("times_s", "skew"), [([1.0, 1.0, 1.0, 1.5], 0.5), ([0.4, 0.6], 0.6 / 0.5 - 1)])
def test_rank_skew_compares_the_slowest_with_the_median_rank(times_s: list[float], skew: float) -> None:
    case = make_case(world_size=len(times_s))
    (row,) = case_rows([CaseResult(case=case, rounds=(make_record(case, iteration_time_s=times_s),))])
    assert row.rank_skew == pytest.approx(skew)
    assert row.iteration_time_s == max(times_s)


def test_a_start_up_is_what_a_process_takes_beyond_its_iterations() -> None:
    """Computed by hand: 12 iterations of 0.5, 0.6 and 0.7 s are 6, 7.2 and 8.4 s."""
    result = make_result(make_case(), 0.5, 0.6, 0.7)
    walls_s = (46.0, 37.2, None)
    timed = [replace(record, wall_time_s=wall_s) for record, wall_s in zip(result.rounds, walls_s, strict=True)]
    assert start_up_s(replace(result, rounds=tuple(timed))) == pytest.approx((40.0 + 30.0) / 2)
    assert start_up_s(replace(result, rounds=tuple(timed[2:]))) is None


def test_a_round_in_turns_lasts_as_long_as_its_own_start_and_iterations() -> None:
    record = replace(make_record(make_case(), iteration_time_s=[0.5]), wall_time_s=500.0)
    (rank,) = record.ranks
    own_s = sum(rank.phases_s.values()) + sum(iteration_times_s(record))
    taken = TurnsTaken(beside=("another",), turns=3, turn_s=2.5)
    assert own_wall_s(replace(record, turns=taken)) == pytest.approx(own_s)
    assert own_s < 100
    assert own_wall_s(record) == 500.0
    assert own_wall_s(replace(record, turns=taken, outcome="crashed")) == 500.0
    assert own_wall_s(replace(record, turns=taken, wall_time_s=None)) is None


def test_learning_curve_is_the_mean_over_ranks_and_skips_what_is_missing() -> None:
    case = make_case(world_size=2)
    record = make_record(case)
    ranks = tuple(
        _with_rewards(rank, rewards)
        for rank, rewards in zip(record.ranks, ([None, 1.0, 4.0], [None, 3.0, None]), strict=True)
    )
    result = CaseResult(case=case, rounds=(replace(record, ranks=ranks),))
    (row,) = case_rows([result])
    assert [(point.iteration, point.reward) for point in learning_curve(result, row)] == [(1, 2.0), (2, 4.0)]


def _with_rewards(rank: RankRecord, rewards: list[float | None]) -> RankRecord:
    return replace(rank, samples={**rank.samples, "reward_mean": tuple(rewards)})


def test_curves_name_only_what_differs_within_the_series() -> None:
    assert {row.curve for row in case_rows(full_results())} == {"rl_games", "rsl_rl"}
    one, larger, spread = make_case(), make_case(num_envs_global=256), make_case(world_size=4, nnodes=2)

    def curves(*cases: Case) -> list[str]:
        return sorted({row.curve for row in case_rows([make_result(case, 0.5) for case in cases])})

    assert curves(one, larger, spread) == ["rsl_rl, 128 environments", "rsl_rl, 256 environments"]
    assert curves(one, make_case(world_size=4), spread) == ["rsl_rl", "rsl_rl, 2 nodes"]


def test_speedups_have_the_interval_of_the_model_of_their_series() -> None:
    results = [make_result(make_case(world_size=ranks), *(t / ranks for t in (0.8, 0.9, 1.6))) for ranks in (1, 2)]
    rows = rows_by_ranks(results)
    # Both samples have one variance of logarithms: 4 degrees of freedom, and no others are left.
    widened = math.exp(2.776445105 * math.sqrt(2 * variance(map(math.log, (0.8, 0.9, 1.6))) / 3))
    assert (rows[1].speedup, rows[1].speedup_interval) == (1.0, None)
    assert rows[2].speedup_interval == pytest.approx((2 / widened, 2 * widened))
    low, high = rows[2].scaling_efficiency_interval or (0.0, 0.0)
    assert (2 * low, 2 * high) == rows[2].speedup_interval


def test_speedups_of_unequal_rounds_have_an_interval_and_of_one_round_none() -> None:
    base = make_result(make_case(), 0.8, 0.9, 1.0, 1.1)
    (_, row) = case_rows([base, make_result(make_case(world_size=2), 0.4, 0.45, 0.5)])
    assert row.speedup_interval is not None
    assert row.speedup_interval[0] < 2.0 < row.speedup_interval[1]
    (_, row) = case_rows([base, make_result(make_case(world_size=2), 0.5)])
    assert (row.speedup_interval, row.scaling_efficiency_interval) == (None, None)
