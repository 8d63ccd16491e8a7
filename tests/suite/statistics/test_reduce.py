"""The number of a round: the median over steady iterations of the slowest rank's time."""

from collections.abc import Callable

import pytest

from suite.schema.record import Case, RunRecord
from suite.statistics import reduce
from tests.fixtures.results.stored_rounds import plain_rank, plain_round


def record_of(case: Case, *columns: tuple[float | None, ...]) -> RunRecord:
    """A completed round of a two-rank case, one column of iteration times per rank."""
    return plain_round(case, *(plain_rank(rank, iteration_time_s=column) for rank, column in enumerate(columns)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (((1.0, 1.0),), "samples of 1 of 2 ranks"),
        (((1.0, 1.0), (1.0,)), "rank 0: 2, rank 1: 1"),
        (((1.0, 1.0), (1.0, None)), "rank 1, iteration 1: iteration_time_s is None"),
        (((1.0, 1.0), (1.0, 0.0)), "rank 1, iteration 1: iteration_time_s is 0.0"),
        (((1.0,), (1.0,)), "no steady iteration"),
        (((), ()), "no steady iteration"),
    ],
)
def test_a_round_without_a_sound_number_is_an_error(
    make_case: Callable[..., Case], columns: tuple[tuple[float | None, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        reduce.round_time_s(record_of(make_case(), *columns))


def test_the_statistic_is_the_median_of_what_the_slowest_rank_took_once_it_was_steady(
    make_case: Callable[..., Case],
) -> None:
    """Which iterations are steady is decided once per round: a rank that settles early is cut like the others."""
    late = (9.0, 7.0, 6.0, *[2.0] * 9)
    early = (9.0, *[1.0] * 11)
    record = record_of(make_case(), early, late)
    window = reduce.steady_part(record)
    assert (window.start, window.stop, window.flag) == (3, 12, None)
    assert reduce.steady_iteration_times_s(record) == (2.0,) * 9
    assert reduce.round_time_s(record) == 2.0
    assert window.of(early) == (1.0,) * 9
