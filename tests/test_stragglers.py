import itertools
import math
import statistics
from dataclasses import replace

import pytest

from reports.stragglers import MIN_LAGS, Lags, expected_largest, lags_of, tail_largest
from suite.schema.record import CaseResult, RunRecord
from tests.generated_results import make_case, make_record, make_result


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_the_largest_of_draws_is_the_mean_over_all_of_them(draws: int) -> None:
    values = (0.0, 0.1, 0.3, 0.7)
    all_draws = itertools.product(values, repeat=draws)
    assert expected_largest(values, draws) == pytest.approx(statistics.fmean(max(drawn) for drawn in all_draws))


def test_many_draws_find_the_worst_that_was_seen_and_nothing_worse() -> None:
    assert expected_largest((0.0, 0.1, 0.3), 1024) == pytest.approx(0.3)


def test_in_the_tail_every_doubling_adds_the_same() -> None:
    scale, count = 0.05, 20_000
    exponential = [-scale * math.log(1 - (index + 0.5) / count) for index in range(count)]
    harmonic = sum(1 / number for number in range(1, 1025))  # of 1024 exponential draws the largest has this mean
    assert tail_largest(exponential, 1024) == pytest.approx(scale * harmonic, rel=0.01)
    growth = tail_largest(exponential, 1024) - tail_largest(exponential, 512)
    assert growth == pytest.approx(scale * math.log(2), rel=0.01)


def test_the_tail_is_of_the_values_beyond_the_decile() -> None:
    """By hand: nine tenths are 0, the rest 0.3 and an exponential more; 1024 draws have 102.4 of them."""
    scale, count = 0.05, 2000
    tail = [0.3 - scale * math.log(1 - (index + 0.5) / count) for index in range(count)]
    largest = 0.3 + scale * (math.log(102.4) + 0.5772)
    assert tail_largest([0.0] * (9 * count) + tail, 1024) == pytest.approx(largest, rel=0.005)


def test_equal_values_have_no_tail() -> None:
    assert tail_largest((0.2,) * 50, 1024) == 0.2


def test_the_band_reaches_from_what_was_measured_to_the_tail() -> None:
    ordered = tuple(index / 1000 for index in range(100))
    lags = Lags(world_size=4, ordered=ordered, slowest=0.08)
    low, expected, high = (lags.largest_of(256, bound) for bound in ("low", "expected", "high"))
    assert low == pytest.approx(expected_largest(ordered, 4))
    assert expected == expected_largest(ordered, 256)
    assert low < expected < high
    assert lags.largest_of(2, "low") == lags.largest_of(2)


def skewed(times_s: list[float], *, rounds: int = 1) -> CaseResult:
    case = make_case(world_size=len(times_s), device="cuda")
    return CaseResult(
        case=case, rounds=tuple(make_record(case, index=index, iteration_time_s=times_s) for index in range(rounds))
    )


def test_a_lag_is_of_the_time_without_all_reduce_against_the_median_rank() -> None:
    lags = lags_of(skewed([1.0, 1.0, 1.0, 1.2]))  # a tenth of each is all-reduce
    assert lags is not None
    assert lags.slowest == pytest.approx(0.2)
    quarter = len(lags.ordered) // 4
    assert lags.ordered == pytest.approx([0.0] * 3 * quarter + [0.2] * quarter)


def test_waiting_in_all_reduce_is_no_lag() -> None:
    """Both ranks end together: the quick one waits as much longer as the slow one works."""
    (record,) = skewed([1.0, 1.0], rounds=1).rounds
    quick, slow = record.ranks
    waits = {**quick.samples, "all_reduce_time_s": tuple(0.4 * 10 ** (index == 0) for index in range(12))}
    uneven = replace(record, ranks=(replace(quick, samples=waits), slow))
    lags = lags_of(CaseResult(case=record.case, rounds=(uneven,)))
    assert lags is not None
    assert lags.slowest == pytest.approx(0.9 / 0.75 - 1)


def test_what_slows_all_ranks_at_once_is_no_lag() -> None:
    (record,) = skewed([1.0, 1.0]).rounds
    lags = lags_of(CaseResult(case=record.case, rounds=(slowed(record, 1.0), slowed(record, 1.5))))
    assert lags is not None
    assert lags.slowest == pytest.approx(0)


def slowed(record: RunRecord, factor: float) -> RunRecord:
    ranks = [
        replace(
            rank,
            samples={
                name: tuple(None if value is None else value * factor for value in column)
                for name, column in rank.samples.items()
            },
        )
        for rank in record.ranks
    ]
    return replace(record, ranks=tuple(ranks), round=int(factor * 10))


def test_one_rank_and_short_rounds_have_no_lags() -> None:
    assert lags_of(make_result(make_case(device="cuda"), 1.0, 1.0)) is None
    short = skewed([1.0, 1.1])
    (record,) = short.rounds
    ranks = [
        replace(rank, samples={name: column[:4] for name, column in rank.samples.items()}) for rank in record.ranks
    ]
    few = replace(record, ranks=tuple(ranks))
    assert 3 * len(ranks) < MIN_LAGS
    assert lags_of(CaseResult(case=record.case, rounds=(few,))) is None
