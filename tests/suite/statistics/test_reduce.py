"""The number of a round: the median over steady iterations of the slowest rank's time; and what marks cost."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.schema.record import Case, RunRecord
from suite.statistics import reduce
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s
from suite.statistics.timing_cost import iteration_costs, timing_cost
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.results.generated_results import make_record
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


def round_of(time_s: Callable[[int, float], float], *, iterations: int = 41, every: int = 4) -> RunRecord:
    """``time_s`` of an iteration's index and whether it had marks. The first iteration is slow, as it always is."""
    record = make_record(generated_case(iterations=iterations))
    marked = tuple(float(index % every == 2 % every) for index in range(iterations))
    times_s = (9.0, *(time_s(index, mark) for index, mark in list(enumerate(marked))[1:]))
    (rank,) = record.ranks
    samples = {**rank.samples, "iteration_time_s": times_s, "marked": marked}
    return replace(record, ranks=(replace(rank, samples=samples),))


def test_the_cost_is_what_an_iteration_takes_longer_with_marks() -> None:
    cost = timing_cost([round_of(lambda _, mark: 0.5 + 0.01 * mark)] * 3)
    assert cost is not None
    assert cost.iterations == 3 * 10  # 2, 6 ... 38
    assert cost.median == pytest.approx(0.02)
    assert cost.interval == pytest.approx((0.02, 0.02))


def test_a_rounds_number_is_free_of_what_marks_cost() -> None:
    record = round_of(lambda _, mark: 0.5 + 0.01 * mark)
    assert round_time_s(record) == 0.5
    assert marked_iterations(record) == tuple(range(2, 41, 4))
    assert counted_iterations(record) == tuple(index for index in range(1, 41) if index % 4 != 2)


@pytest.mark.parametrize("every", [1, 100])
def test_where_all_iterations_are_alike_all_count(every: int) -> None:
    record = round_of(lambda index, _: 0.5 if index % 2 else 0.6, every=every)
    assert counted_iterations(record) == tuple(range(1, 41) if every == 1 else (1, *range(3, 41)))
    (rank,) = record.ranks
    samples = {name: column for name, column in rank.samples.items() if name != "marked"}
    old = replace(record, ranks=(replace(rank, samples=samples),))  # of a time when every iteration was marked
    assert counted_iterations(old) == marked_iterations(old) == tuple(range(1, 41))


def test_nothing_is_known_of_fewer_than_eight_marked_iterations() -> None:
    seven, eight = (round_of(lambda _, mark: 0.5 + 0.01 * mark, iterations=4 * number) for number in (7, 8))
    assert len(iteration_costs(seven)) == 7
    assert timing_cost([seven]) is None
    cost = timing_cost([eight])
    assert cost is not None
    assert cost.iterations == 8
    assert timing_cost([make_record(generated_case())]) is None
    assert timing_cost([]) is None
