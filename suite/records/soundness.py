"""Checks that the fields of a case and its rounds fit together, beyond their types. Pure.

``suite.records.store`` checks before it writes and after it reads, so its callers need not; ``suite.records.collect``
makes a round that fails the check ``invalid``.
"""

import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import pairwise
from types import NoneType
from typing import Any, Final

from suite.files.wording import counted
from suite.schema.record import Case, RankRecord, RunRecord

MIN_ITERATIONS: Final = 2  # the first is never steady
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
MOST_OF_ITERATION: Final = 2.0  # that a library's own time may be of ours: it may be of a rollout that began earlier
SLACK_S: Final = 1.0
LARGEST: Final = 1e18  # of all numbers: their sums and squares still fit into a float
_COUNTS: Final = (
    "nnodes", "nproc_per_node", "num_envs", "num_envs_global", "num_steps_per_env", "trainings_per_gpu",
)  # fmt: skip
_OF_LEARNING: Final = ("minibatch_size", "optimiser_steps")  # 0 where a batch is too small: it is skipped
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # of a series, and of each folder and the file of a case
_FREE: Final = frozenset({"settings", "workload"})  # libraries use huge numbers there for infinity


def fault_of_record(record: RunRecord) -> str | None:
    """Return the first fault of a round or of its case; None if there is none."""
    return next(_faults(record), None)


def _faults_of_case(case: Case, *, is_skipped: bool) -> Iterator[str]:
    if not all(_NAME.fullmatch(part) for part in (case.series, *case.case_id.split("/"))):
        yield f"its names are {case.series!r} and {case.case_id!r}, allowed are letters, digits, '_', '.', '-' and '/'"
    least = dict.fromkeys(_COUNTS, 1) | dict.fromkeys(_OF_LEARNING, 0 if is_skipped else 1)
    for name, smallest in least.items():
        if getattr(case, name) < smallest:
            yield f"its {name} is {getattr(case, name)}, allowed is {smallest} or more"
    if case.iterations < MIN_ITERATIONS:
        yield f"its iterations are {case.iterations}, allowed is {MIN_ITERATIONS} or more"
    yield from _too_large(case, "case")


def _faults(record: RunRecord) -> Iterator[str]:
    yield from _faults_of_case(record.case, is_skipped=record.outcome == "skipped")
    if record.round < 0:
        yield f"its round is {record.round}, allowed is 0 or more"
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
    yield from _too_large(record, "record")


def _faults_of_completed(record: RunRecord) -> Iterator[str]:
    """Check that every rank has a time for every iteration: without the slowest rank a machine would look faster."""
    case = record.case
    ranks = [rank.rank for rank in record.ranks]
    if len(ranks) != case.num_processes:
        yield f"it has samples of {len(ranks)} of {case.num_processes} ranks"
    if ranks != list(range(len(ranks))):
        yield f"its ranks are {ranks}, allowed is each once, in their order"
    numbers = [rank.num_iterations for rank in record.ranks]
    if len(set(numbers)) > 1:
        yield f"its ranks have times of {', '.join(map(str, numbers))} iterations, allowed is one number"
    if min(numbers, default=0) < MIN_ITERATIONS:
        yield f"its ranks have times of {counted(min(numbers, default=0), 'iteration')}, needed are {MIN_ITERATIONS}"
    for rank in record.ranks:
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


def _too_large(value: Any, where: str) -> Iterator[str]:
    """Yield every number beyond ``LARGEST``, with its place in the record."""
    if isinstance(value, int | float):
        if abs(value) > LARGEST:
            yield f"its {where.partition('.')[2]} is {reprlib.repr(value)}, allowed is at most {LARGEST:g}"
        return
    if isinstance(value, tuple) and _are_numbers_in_range(value):  # nearly all numbers are in such columns
        return
    for name, item in _parts(value):
        if not (item is None or isinstance(item, str) or (isinstance(item, int | float) and abs(item) <= LARGEST)):
            yield from _too_large(item, f"{where}.{name}")


def _are_numbers_in_range(column: tuple[Any, ...]) -> bool:
    """Whether a column has nothing but numbers up to ``LARGEST`` and None."""
    if not set(map(type, column)) <= {float, int, bool, NoneType}:
        return False
    return max(map(abs, filter(None, column)), default=0) <= LARGEST


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if is_dataclass(value):
        return ((item.name, getattr(value, item.name)) for item in fields(value) if item.name not in _FREE)
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, tuple) else ()
