"""What the samples of runs become: their times, start-up, shares of an iteration, and the speed of their cores."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from suite.schema.record import Case, RankRecord, RunRecord
from suite.statistics.attribution import Attribution, attribution
from suite.statistics.core_speed import SLOWED, core_speed, fastest_probes_s
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s, window
from suite.statistics.start_up import COLD_FACTOR, StartUp, classify, start_up
from tests.conftest import CaseMaker
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
    make_case: CaseMaker, columns: tuple[tuple[float | None, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        round_time_s(record_of(make_case(), *columns))


@pytest.mark.parametrize(("iterations", "first"), [(2, 1), (3, 1), (5, 1), (6, 2), (10, 2), (12, 3), (41, 9)])
def test_the_window_is_the_last_four_fifths_and_never_the_first_iteration(iterations: int, first: int) -> None:
    record = make_record(generated_case(iterations=iterations))
    assert window(record) == range(first, iterations)


def test_the_statistic_is_the_mean_over_the_window_of_what_the_slowest_rank_took(
    make_case: CaseMaker,
) -> None:
    """Each iteration has a slowest rank of its own."""
    late = (9.0, 7.0, 6.0, *[2.0] * 8, 3.0)
    early = (9.0, *[1.0] * 4, 4.0, *[1.0] * 6)
    assert round_time_s(record_of(make_case(), late, early)) == pytest.approx((7 * 2.0 + 3.0 + 4.0) / 9)


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


def test_a_start_is_phases_and_first_iteration_of_the_slowest_rank() -> None:
    record = make_record(generated_case(world_size=2), iteration_time_s=(0.4, 0.5))
    assert start_up(record).total_s == pytest.approx(15.0)  # 4 s of imports, 6 s of a scene, 5 s of an iteration


def test_what_lies_between_the_phases_belongs_to_the_start() -> None:
    """Ranks are joined and a library prepares itself outside of every phase: 10 of 20 s here; rank 1 is ready first."""
    record = make_record(generated_case(world_size=2), iteration_time_s=(0.1, 0.4))
    ranks = tuple(
        replace(
            rank,
            phases_s={"imports_torch": imports_s, "environment_creation": 8.0},
            samples={**rank.samples, "start_s": tuple(first_s + x for x in rank.samples["start_s"] if x is not None)},
        )
        for rank, imports_s, first_s in zip(record.ranks, (1.0, 2.0), (18.0, 14.0), strict=True)
    )
    assert start_up(replace(record, ranks=ranks)).total_s == pytest.approx(1.0 + 18.0 + 1.0)


@pytest.mark.parametrize(
    ("starts", "kinds"),
    [
        ([(69.0, None), (12.3, None), (12.0, None)], ("cold", "warm", "warm")),
        ([(COLD_FACTOR * 10.0, None), (10.0, None)], ("warm", "warm")),
        ([(12.0, None)], (None,)),
        # a count of kernels goes before the time
        ([(12.0, 96)], ("cold",)),
        ([(56.2, 0), (35.8, 0), (12.0, 1)], ("warm", "warm", "cold")),
        ([(69.0, None), (12.3, 0)], ("cold", "warm")),
    ],
)
def test_cold_is_what_compiled_kernels_or_took_much_longer_than_the_shortest(
    starts: list[tuple[float, int | None]], kinds: tuple[str | None, ...]
) -> None:
    assert classify([StartUp(total_s=total_s, kernels_compiled=count) for total_s, count in starts]) == kinds


@pytest.mark.parametrize("counted", [96, 0, None])  # None: a record of before they were counted
def test_kernels_are_those_that_the_first_rank_of_a_node_counted(counted: int | None) -> None:
    record = make_record(generated_case(world_size=2))
    ranks = (replace(record.ranks[0], kernels_compiled=counted), record.ranks[1])
    assert start_up(replace(record, ranks=ranks)).kernels_compiled == counted


TIMES = {
    "iteration_time_s": 10.0,
    "collection_time_s": 6.0,
    "learning_time_s": 3.5,
    "environment_step_time_s": 4.0,
    "simulate_time_s": 2.0,
    "render_time_s": 1.0,
    "inference_time_s": 0.5,
    "all_reduce_time_s": 1.5,
}


def rank_of(number: int, iterations: int = 2, **changes: float | Sequence[float] | None) -> RankRecord:
    """The times above in every iteration, some changed; a sequence gives one for each."""
    samples: dict[str, Any] = {
        name: tuple(value) if isinstance(value, Sequence) else (value,) * iterations
        for name, value in {**TIMES, **changes}.items()
    }
    return plain_rank(number, **samples)


def round_of_ranks(make_case: CaseMaker, *ranks: RankRecord) -> RunRecord:
    return plain_round(make_case(nproc_per_node=len(ranks)), *ranks)


def whole(shares: Attribution) -> float:
    return float(sum(share for name, share in asdict(shares).items() if name != "rank" and share is not None))


def test_one_rank_has_no_waiting(make_case: CaseMaker) -> None:
    (shares,) = attribution(round_of_ranks(make_case, rank_of(0, all_reduce_time_s=None)))
    assert asdict(shares) == pytest.approx(
        {
            "rank": 0,
            "simulate": 0.2,
            "render": 0.1,
            "environment": 0.1,
            "infer": 0.05,
            "learn": 0.35,
            "all_reduce": None,
            "waiting": None,
            "other": 0.2,  # 1.5 s of the rollout and 0.5 s of neither
        }
    )
    assert whole(shares) == pytest.approx(1.0)


def test_waiting_is_what_exceeds_the_least_of_the_same_iteration(make_case: CaseMaker) -> None:
    """The ranks take turns at being late: each waits 2 s once, though both reduce for 5 s in all."""
    ranks = (rank_of(0, 3, all_reduce_time_s=(9.0, 1.5, 3.5)), rank_of(1, 3, all_reduce_time_s=(9.0, 3.5, 1.5)))
    for shares in attribution(round_of_ranks(make_case, *ranks)):
        assert (shares.all_reduce, shares.waiting) == pytest.approx((0.15, 0.1))
        assert (shares.learn, whole(shares)) == pytest.approx(((7.0 - 5.0) / 20.0, 1.0))


def test_a_part_without_a_time_is_missing_and_its_time_stays_in_the_whole(make_case: CaseMaker) -> None:
    """Older stored results lack these parts."""
    old = rank_of(0, simulate_time_s=None, render_time_s=None, inference_time_s=None, all_reduce_time_s=None)
    (shares,) = attribution(round_of_ranks(make_case, old))
    assert (shares.simulate, shares.render, shares.infer) == (None, None, None)
    assert (shares.environment, shares.other) == pytest.approx((0.4, 0.25))
    assert whole(shares) == pytest.approx(1.0)


def test_only_marked_iterations_of_the_window_count(make_case: CaseMaker) -> None:
    learned = rank_of(0, 3, learning_time_s=(0.0, 2.5, 3.5), all_reduce_time_s=None, marked=(0.0, 0.0, 1.0))
    record = round_of_ranks(make_case, learned)
    assert attribution(record)[0].learn == pytest.approx(0.35)
    with pytest.raises(ValueError, match="rank 0"):
        attribution(round_of_ranks(make_case, rank_of(0, learning_time_s=None)))


CASE = generated_case(device="cuda", iterations=41)
FAST_S, SLOW_S = 1.0e-4, 1.9e-4


def probed(record: RunRecord, *probes_s: Sequence[float | None]) -> RunRecord:
    """A record whose iteration takes 1.4 s instead of 1 s after a slow probe of any rank."""
    times_s = [1.0] * len(probes_s[0])
    for index in range(len(times_s) - 1):
        if any((column[index] or 0.0) > SLOWED * FAST_S for column in probes_s):
            times_s[index + 1] = 1.4

    def changed(rank: RankRecord, column: Sequence[float | None]) -> RankRecord:
        marked = tuple(float(probe_s is not None) for probe_s in column)
        mine = {"iteration_time_s": tuple(times_s), "marked": marked, "core_probe_time_s": tuple(column)}
        return replace(rank, samples={**rank.samples, **mine})

    ranks = tuple(changed(rank, column) for rank, column in zip(record.ranks, probes_s, strict=True))
    return replace(record, ranks=ranks)


def column(*probes_s: float) -> list[float | None]:
    """Marked iterations with these probes, each followed by one without."""
    return [value for probe_s in probes_s for value in (probe_s, None)]


def a_round(*probes_s: float) -> RunRecord:
    case = replace(CASE, iterations=2 * len(probes_s))
    return probed(make_record(case, iteration_time_s=[1.0]), column(*probes_s))


def test_iterations_are_told_apart_by_the_look_before_them() -> None:
    record = a_round(*[FAST_S, SLOW_S] * 12)
    speed = core_speed([record], fastest_probes_s([record]))
    assert speed is not None
    assert speed.slowed / speed.looks == pytest.approx(0.5, abs=0.05)
    assert speed.slower_by == pytest.approx(0.4)


def test_a_case_that_never_had_a_fast_core_is_told_by_the_others_of_its_host() -> None:
    slow = a_round(*[SLOW_S] * 12)
    alone = core_speed([slow], fastest_probes_s([slow]))
    assert alone is not None
    assert alone.slowed == 0
    speed = core_speed([slow], fastest_probes_s([slow, a_round(*[FAST_S] * 12)]))
    assert speed is not None
    assert speed.slowed == speed.looks == alone.looks
    assert speed.slower_by is None
