from dataclasses import replace

import pytest

from reports.analysis.rows import case_rows, own_wall_s, rank_skew, start_up_s
from suite.schema.record import Case, CaseResult
from suite.schema.turns import TurnsTaken
from suite.statistics.reduce import iteration_times_s
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_record,
    make_result,
)


def test_one_failed_round_is_counted_and_the_others_measure() -> None:
    case = make_case()
    failure = make_record(case, index=1, outcome="crashed", reason="RuntimeError: no")
    rounds = (
        make_record(case, index=0, iteration_time_s=0.4),
        failure,
        make_record(case, index=2, iteration_time_s=0.9),
    )
    (row,) = case_rows([CaseResult(case=case, rounds=rounds)])
    assert row.rounds_completed == 2
    assert row.iteration_time_s == pytest.approx(0.6)
    assert row.total_fps == pytest.approx(case.frames_per_iteration / 0.6)


def test_a_case_without_a_completed_round_has_no_numbers() -> None:
    (row,) = case_rows([failed_result(make_case(), outcome="skipped", reason="needs 2 GPUs")])
    assert row.iteration_time_s is row.total_fps is None


def test_a_single_rank_has_no_skew() -> None:
    assert rank_skew(make_record(make_case())) is None


@pytest.mark.parametrize(("times_s", "skew"), [([1.0, 1.0, 1.0, 1.5], 0.5), ([0.4, 0.6], 0.6 / 0.5 - 1)])
def test_rank_skew_compares_the_slowest_with_the_median_rank(times_s: list[float], skew: float) -> None:
    case = make_case(world_size=len(times_s))
    record = make_record(case, iteration_time_s=times_s)
    assert rank_skew(record) == pytest.approx(skew)
    (row,) = case_rows([CaseResult(case=case, rounds=(record,))])
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


def test_curves_name_only_what_differs_within_the_series() -> None:
    assert {row.curve for row in case_rows(full_results())} == {"rl_games", "rsl_rl"}
    one, larger, spread = make_case(), make_case(num_envs_global=256), make_case(world_size=4, nnodes=2)

    def curves(*cases: Case) -> list[str]:
        return sorted({row.curve for row in case_rows([make_result(case, 0.5) for case in cases])})

    assert curves(one, larger, spread) == ["rsl_rl, 128 environments", "rsl_rl, 256 environments"]
    assert curves(one, make_case(world_size=4), spread) == ["rsl_rl", "rsl_rl, 2 nodes"]
