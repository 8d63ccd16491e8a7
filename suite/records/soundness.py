"""Checks that the fields of a round fit together, beyond what each may be (``suite.schema``). Pure.

``suite.records.store`` checks before it writes and after it reads, so its callers need not; ``suite.records.collect``
makes a round that fails the check ``invalid``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from suite.schema.record import RankRecord, RunRecord

SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
MOST_OF_ITERATION: Final = 2.0  # that a library's own time may be of ours: it may be of a rollout that began earlier
SLACK_S: Final = 1.0


def fault_of_record(record: RunRecord) -> str | None:
    """Return the first fault of a round or of its case; None if there is none."""
    return next(_faults(record), None)


def _faults(record: RunRecord) -> Iterator[str]:
    for name in ("minibatch_size", "optimiser_steps"):  # 0 where a batch is too small: it is skipped
        if record.outcome != "skipped" and not getattr(record.case, name):
            yield f"its {name} is 0, allowed is 1 or more"
    if record.started_utc is not None and not _is_moment(record.started_utc):
        yield f"its started_utc is {record.started_utc!r}, allowed is a date and time with its offset"
    if record.started_utc is None and record.wall_time_s is not None:
        yield f"its wall_time_s is {record.wall_time_s:g} without a started_utc"
    for rank in record.ranks:
        yield from _unequal(f"rank {rank.rank}", rank.samples, "samples")
    for one in record.readings:
        yield from _unequal(f"node {one.node}", one.columns, "readings")
    if record.outcome == "completed":
        yield from _faults_of_completed(record)


def _faults_of_completed(record: RunRecord) -> Iterator[str]:
    """Check that every rank has a time for every iteration: without the slowest rank a machine would look faster."""
    case = record.case
    ranks = [rank.rank for rank in record.ranks]
    if len(ranks) != case.num_processes or ranks != list(range(len(ranks))):
        yield f"its ranks are {ranks}, needed are 0 to {case.num_processes - 1}, in their order"
    for rank in record.ranks:
        if rank.num_iterations != case.iterations:
            yield f"rank {rank.rank} has times of {rank.num_iterations} of {case.iterations} iterations"
        yield from _faulty_times(rank)
        yield from _faulty_library_times(rank, record)


def _faulty_times(rank: RankRecord) -> Iterator[str]:
    for iteration, time_s in enumerate(rank.samples.get("iteration_time_s", ())):
        if time_s is None or time_s < SHORTEST_S:
            yield f"rank {rank.rank}, iteration {iteration}: iteration_time_s is {time_s}, not a time above 0"


def _faulty_library_times(rank: RankRecord, record: RunRecord) -> Iterator[str]:
    """A library may use the wall clock, which is set while it runs. In turns its times include those of others.

    The column of turns says so: the ranks write it, and the record has its turns only after this was judged.
    """
    frames = record.case.frames_per_iteration / record.case.trainings_per_gpu
    wall_s = math.inf if record.wall_time_s is None else record.wall_time_s
    for name, column in rank.samples.items():
        if "." not in name or not name.endswith(("_s", "_fps")):
            continue
        for iteration, (value, own_s) in enumerate(zip(column, rank.samples["iteration_time_s"], strict=False)):
            if value is None or own_s is None:
                continue
            time_s = value if name.endswith("_s") else frames / value if value else math.inf
            most_s = wall_s if "turn" in rank.samples else min(wall_s, MOST_OF_ITERATION * own_s + SLACK_S)
            if not 0 <= time_s <= most_s:
                yield (
                    f"rank {rank.rank}, iteration {iteration}: {name} is {value:g} in an iteration of {own_s:g} s; was "
                    "the machine's clock set while it ran?"
                )
                break


def _unequal(who: str, columns: Mapping[str, Sequence[Any]], what: str) -> Iterator[str]:
    lengths = {name: len(column) for name, column in columns.items()}
    for (name, length), (other, other_length) in pairwise(lengths.items()):
        if length != other_length:
            yield f"{who} has {length} {what} of {name} and {other_length} of {other}"


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
        return moment.tzinfo is not None and moment.timestamp() >= 0
    except (ValueError, OverflowError):
        return False
