"""Reduce the samples of all ranks to one number per round. Pure: nothing here reads a file or a clock.

The number of a round is the mean time of an iteration of the slowest rank over the round's window, the last
``WINDOW`` of its iterations. Detailed timing (marks within an iteration) costs time, so marked iterations do not count
if others have no marks. The parts of an iteration come from the marked ones.

The time of an iteration changes while the policy learns, so runs that are compared need one window. A window chosen for
each run by its own times would compare different work.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final
from weakref import finalize

from suite.schema.record import RankRecord, RunRecord

WINDOW: Final = 0.8  # of the iterations of a round, the last ones

# Stored with every result, so that each file defines its numbers. Change it together with the rule.
ROUND_STATISTIC: Final = (
    "mean over the last four fifths of the iterations, without the marked ones where others exist, of the slowest "
    "rank's iteration_time_s, in seconds; of several trainings on one GPU their harmonic mean"
)

# By the record's id: records contain mappings, so they have no hash. A round of 1024 ranks is read 200 times.
_KNOWN: Final[dict[int, tuple[float, ...]]] = {}  # times


def iteration_times_s(record: RunRecord) -> tuple[float, ...]:
    """Time of every iteration in seconds, shape (iterations,): the maximum over all ranks.

    The times are cached as long as the record exists, because everything else here needs them.

    Raises ValueError if a rank is missing, ranks differ in length, or a time is missing or not positive: the slowest
    of the remaining ranks would look like a faster machine.
    """
    if id(record) not in _KNOWN:
        _KNOWN[id(record)] = _slowest_rank_times_s(record)
        finalize(record, _KNOWN.pop, id(record), None)
    return _KNOWN[id(record)]


def _slowest_rank_times_s(record: RunRecord) -> tuple[float, ...]:
    if len(record.ranks) != record.case.num_processes:
        samples = f"{len(record.ranks)} of {record.case.num_processes} ranks"
        raise ValueError(f"round {record.round} has samples of {samples}")
    columns = [_rank_times_s(rank) for rank in record.ranks]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(f"rank {rank.rank}: {rank.num_iterations}" for rank in record.ranks)
        raise ValueError(f"ranks of round {record.round} differ in their number of iterations ({lengths})")
    return tuple(max(times) for times in zip(*columns, strict=True))


def window(record: RunRecord, share: float = WINDOW) -> range:
    """The iterations of a round that count, the same for every rank and every column of samples; never the first one.

    ``share``: of all iterations.

    Raises ValueError as ``iteration_times_s`` does, and for fewer than 2 iterations.
    """
    count = len(iteration_times_s(record))
    if count < 2:  # noqa: PLR2004  (the first one and another)
        raise ValueError(f"round {record.round} has no window; it needs at least 2 iterations")
    return range(max(1, count - math.floor(share * count)), count)


def counted_iterations(record: RunRecord, within: range | None = None) -> tuple[int, ...]:
    """The window without marked iterations; all of it if every one is marked.

    ``within``: the window of a run that this one is compared with, which may be shorter. Raises ValueError as
    ``window`` does.
    """
    counted, marks = within or window(record), record.ranks[0].samples.get("marked", ())  # the same on all ranks
    plain = tuple(iteration for iteration in counted if not (marks and marks[iteration]))
    return plain or tuple(counted)


def marked_iterations(record: RunRecord) -> tuple[int, ...]:
    """The window's iterations with marks; () if it is too short to have one. Raises ValueError as ``window`` does."""
    marks = record.ranks[0].samples.get("marked", ())
    return tuple(iteration for iteration in window(record) if not marks or marks[iteration])


def starts_of_turns(record: RunRecord) -> tuple[int, ...]:
    """The first iteration of each turn, before which the processor and the GPU worked for another round."""
    turns = record.ranks[0].samples.get("turn", ())  # the same on all ranks
    return tuple(index for index in range(1, len(turns)) if turns[index] != turns[index - 1])


def round_time_s(record: RunRecord, within: range | None = None) -> float:
    """Seconds per iteration of one round, see ``ROUND_STATISTIC``.

    ``within``: as for ``counted_iterations``, of which several trainings on one GPU have none. Raises ValueError as
    ``window`` does.
    """
    if record.case.trainings_per_gpu > 1:
        return record.case.frames_per_iteration / sum(trainings_fps(record))
    times_s = iteration_times_s(record)
    return fmean(times_s[iteration] for iteration in counted_iterations(record, within))


def completed_times_s(records: Sequence[RunRecord]) -> list[float]:
    """Seconds per iteration of every completed round, in the order of ``records``."""
    return [round_time_s(record) for record in records if record.counts]


def trainings_fps(record: RunRecord) -> tuple[float, ...]:
    """Frames per second of each training of a round. Raises ValueError as ``window`` does."""
    frames, counted = record.case.num_envs * record.case.num_steps_per_env, counted_iterations(record)
    times_s = [_rank_times_s(rank) for rank in record.ranks]
    return tuple(frames / fmean(of_rank[iteration] for iteration in counted) for of_rank in times_s)


def _rank_times_s(rank: RankRecord) -> tuple[float, ...]:
    times: list[float] = []
    for iteration, time_s in enumerate(rank.samples.get("iteration_time_s", ())):
        if time_s is None or not time_s > 0:
            raise ValueError(
                f"rank {rank.rank}, iteration {iteration}: iteration_time_s is {time_s}, not a time above 0"
            )
        times.append(time_s)
    return tuple(times)
