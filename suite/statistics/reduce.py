"""Reduce the samples of all ranks to one number per round. Pure: nothing here reads a file or a clock.

The number of a round is the median, over its steady iterations, of the slowest rank's iteration time. Only
``suite.statistics.steady`` decides which iterations are steady, from these same times, once per round for all ranks.
Detailed timing (marks within an iteration) costs time, so marked iterations do not count if others have no marks. The
parts of an iteration come from the marked ones.
"""

from collections.abc import Callable
from functools import lru_cache
from statistics import median
from typing import Final
from weakref import finalize

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.steady import MIN_STEADY, SteadyWindow, steady_window

# Stored with every result, so that each file defines its numbers. Change it together with the rule.
ROUND_STATISTIC: Final = (
    "median over the steady iterations that are not marked (over all where every one is) and do not begin a turn, of "
    "the slowest rank's iteration_time_s, in seconds; steady are the last iterations from the start that MSER finds in "
    "running medians of three (White 1997: least sum of squared deviations from the mean over the square of the "
    "length), which is after the first iteration, within the first half and leaves "
    f"{MIN_STEADY} iterations where there are so many"
)

# By the record's id: records contain mappings, so they have no hash. A round of 1024 ranks is read 200 times.
_KNOWN: Final[dict[int, tuple[float, ...]]] = {}  # times
_KNOWN_STEADY: Final[dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = {}  # counted and marked iterations


def iteration_times_s(record: RunRecord) -> tuple[float, ...]:
    """Time of every iteration in seconds, shape (iterations,): the maximum over all ranks.

    The times are cached as long as the record exists, because everything else here needs them.

    Raises ValueError if a rank is missing, ranks differ in length, or a time is missing or not positive: the slowest
    of the remaining ranks would look like a faster machine.
    """
    return _computed_once(_slowest_rank_times_s, record, _KNOWN)


def _computed_once[T](compute: Callable[[RunRecord], T], record: RunRecord, known: dict[int, T]) -> T:
    found = known.get(id(record))
    if found is None:
        found = known[id(record)] = compute(record)
        finalize(record, known.pop, id(record), None)
    return found


def _slowest_rank_times_s(record: RunRecord) -> tuple[float, ...]:
    if len(record.ranks) != record.case.num_processes:
        samples = f"{len(record.ranks)} of {record.case.num_processes} ranks"
        raise ValueError(f"round {record.round} has samples of {samples}")
    columns = [_rank_times_s(rank) for rank in record.ranks]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(f"rank {rank.rank}: {rank.num_iterations}" for rank in record.ranks)
        raise ValueError(f"ranks of round {record.round} differ in their number of iterations ({lengths})")
    return tuple(max(times) for times in zip(*columns, strict=True))


def steady_part(record: RunRecord) -> SteadyWindow:
    """The steady iterations of a round: the same for every rank and every column of samples.

    Raises ValueError as ``iteration_times_s`` does, and if no iteration is steady.
    """
    window = _window(iteration_times_s(record))
    if not window.length:
        raise ValueError(f"round {record.round} has no steady iteration; it needs at least 2 iterations")
    return window


def counted_iterations(record: RunRecord) -> tuple[int, ...]:
    """Steady iterations without marks; all steady iterations if every one is marked.

    Raises ValueError as ``steady_part`` does.
    """
    return _computed_once(_counted_and_marked, record, _KNOWN_STEADY)[0]


def marked_iterations(record: RunRecord) -> tuple[int, ...]:
    """Steady iterations with marks; () if a round was too short to have one.

    Raises ValueError as ``steady_part`` does.
    """
    return _computed_once(_counted_and_marked, record, _KNOWN_STEADY)[1]


def starts_of_turns(record: RunRecord) -> tuple[int, ...]:
    """The first iteration of each turn, before which the processor and the GPU worked for another round."""
    turns = record.ranks[0].samples.get("turn", ())  # the same on all ranks
    return tuple(index for index in range(1, len(turns)) if turns[index] != turns[index - 1])


def steady_iteration_times_s(record: RunRecord) -> tuple[float, ...]:
    """Slowest rank's time of each counted iteration [s]. Raises ValueError as ``steady_part`` does."""
    times_s = iteration_times_s(record)
    return tuple(times_s[iteration] for iteration in counted_iterations(record))


def round_time_s(record: RunRecord) -> float:
    """Seconds per iteration of one round, see ``ROUND_STATISTIC``. Raises ValueError as ``steady_part`` does."""
    return median(steady_iteration_times_s(record))


@lru_cache(maxsize=4096)  # every column and figure of a round needs it
def _window(times_s: tuple[float, ...]) -> SteadyWindow:
    return steady_window(times_s)


def _counted_and_marked(record: RunRecord) -> tuple[tuple[int, ...], tuple[int, ...]]:
    window = steady_part(record)
    begins_turn = set(starts_of_turns(record))
    steady = tuple(iteration for iteration in range(window.start, window.stop) if iteration not in begins_turn)
    marks = record.ranks[0].samples.get("marked")  # the same on all ranks
    if marks is None or not any(marks[iteration] == 0 for iteration in steady):
        return steady, steady  # as in old rounds, whose iterations were all marked
    return (
        tuple(iteration for iteration in steady if not marks[iteration]),
        tuple(iteration for iteration in steady if marks[iteration]),
    )


def _rank_times_s(rank: RankRecord) -> tuple[float, ...]:
    times: list[float] = []
    for iteration, time_s in enumerate(rank.samples.get("iteration_time_s", ())):
        if time_s is None or not time_s > 0:
            raise ValueError(
                f"rank {rank.rank}, iteration {iteration}: iteration_time_s is {time_s}, not a time above 0"
            )
        times.append(time_s)
    return tuple(times)
