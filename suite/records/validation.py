"""The stored form of records and cases, and what a stored record may be.

The types of ``suite.schema`` say what each field may be, and pydantic checks it: once before a file is written, and
once after it is read. What fields have to be together is checked here too. A fault is said with its place.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import TypeAdapter, ValidationError

from suite.errors import StoreError
from suite.files.json_file import STORED, explained
from suite.schema.record import SCHEMA_VERSION, Case, CaseResult, Environment, Observations, RankRecord, RunRecord
from suite.schema.stored import Between, plain, stored_name

OLDER: Final = "Read it with the labscale of commit a230a9f6, which knows 1 to 5."
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
MOST_OF_ITERATION: Final = 2.0  # that a library's own time may be of ours: it may be of a rollout that began earlier
SLACK_S: Final = 1.0

type _Version = Annotated[int, Between(SCHEMA_VERSION, SCHEMA_VERSION)]


@dataclass(frozen=True, kw_only=True)
class _StoredRecord(RunRecord):
    """A run's file."""

    __pydantic_config__ = STORED

    schema_version: _Version


@dataclass(frozen=True, kw_only=True)
class _StoredRun(Observations):
    machine: int  # its place in the list of machines


class _StoredCase(TypedDict):
    """What a document of a case holds besides what pytest-benchmark writes."""

    __pydantic_config__ = STORED  # type: ignore[misc]

    schema_version: _Version
    suite_version: str | None
    no_benchmarks_because: str | None
    configuration: Case
    machines: tuple[Environment, ...]
    runs: tuple[_StoredRun, ...]
    ended_because: str | None


class _Document(TypedDict):
    labscale: _StoredCase


_RECORD: Final = TypeAdapter(_StoredRecord)
_DOCUMENT: Final = TypeAdapter(_Document)
# Of records in memory. pydantic takes no configuration for a plain dataclass, but passes on that of a tuple around it.
_MADE: Final = TypeAdapter(
    tuple[RunRecord, ...], config={**STORED, "revalidate_instances": "always", "validate_by_name": True}
)


# ---- to a file ----


def stored_case(result: CaseResult) -> dict[str, Any]:
    """Return the form of a case in its document: its configuration and its machines stand there once."""
    machines = list(dict.fromkeys(record.environment for record in result.rounds))
    runs = []
    for record in result.rounds:
        run = plain(record)
        del run["configuration"]
        runs.append({**run, "machine": machines.index(record.environment)})
    suite_version = (result.completed or result.rounds)[0].environment.suite_version if result.rounds else None
    return {
        "schema_version": SCHEMA_VERSION,
        "suite_version": suite_version,
        "no_benchmarks_because": None if result.completed else "no run completed; runs says why",
        "configuration": plain(result.case),
        "machines": plain(machines),
        "runs": runs,
        "ended_because": result.ended_because,
    }


def fault_of(record: RunRecord) -> str | None:
    """Return the first fault of a round: what a field may not be, or fields that do not fit together."""
    return _fault_of_fields((record,), skip=1) or next(_faults(record), None)


def fault_of_case(result: CaseResult) -> str | None:
    """Return the first fault of a case or of its rounds."""
    if other := [record.round for record in result.rounds if record.case != result.case]:
        return f"run {other[0]} is of another configuration than {result.case.case_id}"
    return _fault_of_fields(result.rounds, skip=0) or _fault_of_rounds(result)


def _fault_of_fields(records: tuple[RunRecord, ...], *, skip: int) -> str | None:
    try:
        _MADE.validate_python(records)
    except ValidationError as error:
        return explained(error, skip=skip, name=stored_name)
    return None


def _fault_of_rounds(result: CaseResult) -> str | None:
    if not result.rounds:
        return f"{result.case.case_id} has no runs; a configuration that cannot run has a skipped one"
    numbers = [record.round for record in result.rounds]
    if len(set(numbers)) != len(numbers):
        return f"the runs of {result.case.case_id} are {numbers}; each may be there once"
    faults = (f"of run {record.round}, {fault}" for record in result.rounds for fault in _faults(record))
    return next(faults, None)


# ---- from a file ----


def record_of(content: bytes, path: Path, next_step: str) -> RunRecord:
    """Return the record that a file contains. Raises StoreError with the path, the fault and ``next_step``."""
    try:
        stored = _RECORD.validate_json(content)
    except ValidationError as error:
        raise _refusal(error, path, next_step) from error
    record = RunRecord(**{item.name: getattr(stored, item.name) for item in fields(RunRecord)})
    if fault := next(_faults(record), None):
        raise StoreError(f"{path} is not valid: {fault}. {next_step}")
    return record


def case_of(content: bytes, path: Path, next_step: str) -> CaseResult:
    """Return the case that a file contains. Raises StoreError with the path, the fault and ``next_step``."""
    try:
        stored = _DOCUMENT.validate_json(content)["labscale"]
    except ValidationError as error:
        raise _refusal(error, path, next_step, skip=1) from error
    case, machines = stored["configuration"], stored["machines"]
    rounds = []
    for run in stored["runs"]:
        if not 0 <= run.machine < len(machines):
            raise StoreError(f"{path}: run {run.round} has machine {run.machine} of {len(machines)}. {next_step}")
        observed = {name: value for name, value in vars(run).items() if name != "machine"}
        rounds.append(RunRecord(case=case, environment=machines[run.machine], **observed))
    result = CaseResult(case=case, rounds=tuple(rounds), ended_because=stored["ended_because"])
    if fault := _fault_of_rounds(result):
        raise StoreError(f"{path} is not valid: {fault}. {next_step}")
    return result


def _refusal(error: ValidationError, path: Path, next_step: str, *, skip: int = 0) -> StoreError:
    """Return what is wrong: no record at all, the version, which explains everything else, or the first fields."""
    faults = error.errors(include_url=False)
    first = faults[0]
    of_version = [fault for fault in faults if fault["loc"][skip:] == ("schema_version",)]
    if first["type"] == "json_invalid":
        text = f"{path} is corrupt, not JSON: {first['ctx']['error']}"
    elif not first["loc"]:
        text = f"{path} contains a {type(first['input']).__name__} where a JSON object was expected"
    elif first["loc"] == ("labscale",):
        text = f"{path} is not a result stored by labscale: it has no labscale"
    elif of_version:
        version = None if of_version[0]["type"] == "missing" else of_version[0]["input"]
        text = f"{path}: schema_version is {version!r}; this labscale reads {SCHEMA_VERSION}"
        if isinstance(version, int) and version > 0:
            next_step = OLDER if version < SCHEMA_VERSION else "Use a newer labscale."
    else:
        text = f"{path} is not valid: {explained(error, skip=skip)}"
    return StoreError(f"{text}. {next_step}")


# ---- fields that have to fit together ----


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
    for node in record.readings:
        yield from _unequal(f"node {node.node}", node.columns, "readings")
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
        for iteration, time_s in enumerate(rank.samples.get("iteration_time_s", ())):
            if time_s is None or time_s < SHORTEST_S:
                yield f"rank {rank.rank}, iteration {iteration}: iteration_time_s is {time_s}, not a time above 0"
        yield from _faulty_library_times(rank, record)


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
