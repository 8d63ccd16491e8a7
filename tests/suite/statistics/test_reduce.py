"""The number of a round: the mean over the window of the slowest rank's time; and what marks cost."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.schema.record import Case, RunRecord
from suite.statistics import reduce
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s, window
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
        (((1.0,), (1.0,)), "at least 2 iterations"),
        (((), ()), "at least 2 iterations"),
    ],
)
def test_a_round_without_a_sound_number_is_an_error(
    make_case: Callable[..., Case], columns: tuple[tuple[float | None, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        reduce.round_time_s(record_of(make_case(), *columns))


@pytest.mark.parametrize(("iterations", "first"), [(2, 1), (3, 1), (5, 1), (6, 2), (10, 2), (12, 3), (41, 9)])
def test_the_window_is_the_last_four_fifths_and_never_the_first_iteration(iterations: int, first: int) -> None:
    record = make_record(generated_case(iterations=iterations))
    assert window(record) == range(first, iterations)


def test_the_statistic_is_the_mean_over_the_window_of_what_the_slowest_rank_took(
    make_case: Callable[..., Case],
) -> None:
    """Each iteration has a slowest rank of its own."""
    late = (9.0, 7.0, 6.0, *[2.0] * 8, 3.0)
    early = (9.0, *[1.0] * 4, 4.0, *[1.0] * 6)
    assert reduce.round_time_s(record_of(make_case(), late, early)) == pytest.approx((7 * 2.0 + 3.0 + 4.0) / 9)


def test_several_trainings_on_one_gpu_have_the_harmonic_mean_of_their_times() -> None:
    """One of 1 s and one of 3 s make as many frames as two of 1.5 s."""
    record = make_record(generated_case(trainings_per_gpu=2, num_envs=64), iteration_time_s=[1.0, 3.0])
    assert round_time_s(record) == pytest.approx(1.5)


def round_of(time_s: Callable[[int, float], float], *, iterations: int = 41, every: int = 4) -> RunRecord:
    """``time_s`` of an iteration's index and whether it had marks. The first iteration is slow, as it always is."""
    record = make_record(generated_case(iterations=iterations))
    marked = tuple(float(index % every == 2 % every) for index in range(iterations))
    times_s = (9.0, *(time_s(index, mark) for index, mark in list(enumerate(marked))[1:]))
    (rank,) = record.ranks
    samples = {**rank.samples, "iteration_time_s": times_s, "marked": marked}
    return replace(record, ranks=(replace(rank, samples=samples),))


def test_the_cost_is_what_an_iteration_takes_longer_with_marks() -> None:
    costs = timing_cost([round_of(lambda _, mark: 0.5 + 0.01 * mark)] * 3)
    assert costs is not None
    cost, iterations = costs
    assert iterations == 3 * 8  # 10, 14 ... 38
    assert cost.value == pytest.approx(0.02)
    assert cost.interval == pytest.approx((0.02, 0.02))


def test_a_rounds_number_is_free_of_what_marks_cost() -> None:
    record = round_of(lambda _, mark: 0.5 + 0.01 * mark)
    assert round_time_s(record) == 0.5
    assert marked_iterations(record) == tuple(range(10, 41, 4))
    assert counted_iterations(record) == tuple(index for index in range(9, 41) if index % 4 != 2)


@pytest.mark.parametrize("every", [1, 100])
def test_where_all_iterations_are_alike_all_count(every: int) -> None:
    record = round_of(lambda index, _: 0.5 if index % 2 else 0.6, every=every)
    assert counted_iterations(record) == tuple(range(9, 41))
    (rank,) = record.ranks
    samples = {name: column for name, column in rank.samples.items() if name != "marked"}
    old = replace(record, ranks=(replace(rank, samples=samples),))  # of a time when every iteration was marked
    assert counted_iterations(old) == marked_iterations(old) == tuple(range(9, 41))


def test_a_shorter_window_of_marked_iterations_alone_counts_them() -> None:
    record = round_of(lambda index, _: 0.01 * (1 + index))
    assert counted_iterations(record, range(38, 39)) == (38,)  # marked
    assert counted_iterations(record, range(38, 40)) == (39,)
    assert round_time_s(record, range(38, 39)) == pytest.approx(0.39)


def test_nothing_is_known_of_fewer_than_eight_marked_iterations() -> None:
    seven, eight = (round_of(lambda _, mark: 0.5 + 0.01 * mark, iterations=number) for number in (37, 41))
    assert len(iteration_costs(seven)) == 7
    assert timing_cost([eight]) is not None
    for too_few in ([seven], [make_record(generated_case())], []):
        assert timing_cost(too_few) is None
