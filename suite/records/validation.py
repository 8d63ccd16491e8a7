"""The stored form of records and cases, and back. A fault is said with the file, the place, and what to do next.

Every function raises StoreError with the path, the fault, and ``next_step``. ``suite.records.store`` calls them before
it writes and after it reads.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

from pydantic import TypeAdapter, ValidationError

from suite.errors import StoreError
from suite.files.json_file import STORED, explained, parsed
from suite.records.soundness import fault_of_record
from suite.schema.record import SCHEMA_VERSION, Case, CaseResult, Environment, Observations, RunRecord
from suite.schema.stored_names import plain

OLDER: Final = "Read it with the labscale of commit a230a9f6, which knows 1 to 5."

# pydantic accepts no configuration for a plain dataclass, but passes on the one of a tuple that contains it.
_RECORD: Final = TypeAdapter(tuple[RunRecord], config=STORED)


@dataclass(frozen=True, kw_only=True)
class _StoredRun(Observations):
    machine: int  # its place in the list of machines


class _StoredCase(TypedDict):
    """What a document of a case holds besides what pytest-benchmark writes."""

    __pydantic_config__ = STORED  # type: ignore[misc]

    schema_version: int
    suite_version: str | None
    no_benchmarks_because: str | None
    configuration: Case
    machines: tuple[Environment, ...]
    runs: tuple[_StoredRun, ...]
    ended_because: str | None


class _Document(TypedDict):
    labscale: _StoredCase


_DOCUMENT: Final = TypeAdapter(_Document)


def stored_record(record: RunRecord) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **plain(record)}


def record_of(content: bytes, path: Path, next_step: str) -> RunRecord:
    """Return the record that a file contains."""
    return checked_record(_object(content, path, next_step), path, next_step)


def checked_record(stored: dict[str, Any], path: Path, next_step: str) -> RunRecord:
    """Return the record that plain values make."""
    _check_version(stored, path, next_step)
    (record,) = _validated(
        _RECORD, [{name: stored[name] for name in stored if name != "schema_version"}], path, next_step
    )
    if fault := fault_of_record(record):
        raise StoreError(f"{path} is not valid: {fault}. {next_step}")
    return record


def fault_of(record: RunRecord) -> str | None:
    """Return the first fault of a round: what a field may not be, or fields that do not fit together."""
    try:
        _RECORD.validate_json(json.dumps([plain(record)]))
    except ValidationError as error:
        return explained(error, skip=1)
    return fault_of_record(record)


def stored_case(result: CaseResult, path: Path, next_step: str) -> dict[str, Any]:
    """Return the form of a case in its document: its configuration and its machines stand there once."""
    machines = list(dict.fromkeys(record.environment for record in result.rounds))
    runs = []
    for record in result.rounds:
        if record.case != result.case:
            raise StoreError(f"{path}: run {record.round} is of another case than {result.case.case_id}. {next_step}")
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


def case_of(content: bytes, path: Path, next_step: str) -> CaseResult:
    """Return the case that a file contains."""
    try:
        document = _DOCUMENT.validate_json(content)
    except ValidationError as error:
        stored = _object(content, path, next_step).get("labscale")
        if not isinstance(stored, dict):
            raise StoreError(f"{path} is not a case stored by labscale: it has no labscale. {next_step}") from error
        _check_version(stored, path, next_step)
        raise StoreError(f"{path} is not valid: {explained(error, skip=1)}. {next_step}") from error
    _check_version(document["labscale"], path, next_step)
    return _case_of(document["labscale"], path, next_step)


def checked_case(stored: dict[str, Any], path: Path, next_step: str) -> CaseResult:
    """Return the case that plain values make."""
    return _case_of(_validated(_DOCUMENT, {"labscale": stored}, path, next_step)["labscale"], path, next_step)


def _case_of(stored: _StoredCase, path: Path, next_step: str) -> CaseResult:
    case, machines = stored["configuration"], stored["machines"]
    if not stored["runs"]:
        raise StoreError(f"{path}: {case.case_id} has no runs; a case that cannot run has a skipped one. {next_step}")
    numbers = [run.round for run in stored["runs"]]
    if len(set(numbers)) != len(numbers):
        raise StoreError(f"{path}: the runs of {case.case_id} are {numbers}; each may be there once. {next_step}")
    rounds = []
    for run in stored["runs"]:
        if not 0 <= run.machine < len(machines):
            raise StoreError(f"{path}: run {run.round} has machine {run.machine} of {len(machines)}. {next_step}")
        observed = {name: value for name, value in vars(run).items() if name != "machine"}
        record = RunRecord(case=case, environment=machines[run.machine], **observed)
        if fault := fault_of_record(record):
            raise StoreError(f"{path} is not valid: of run {record.round}, {fault}. {next_step}")
        rounds.append(record)
    return CaseResult(case=case, rounds=tuple(rounds), ended_because=stored["ended_because"])


def _check_version(stored: Any, path: Path, next_step: str) -> None:
    got = stored.get("schema_version")
    if got == SCHEMA_VERSION:
        return
    is_older = isinstance(got, int) and 0 < got < SCHEMA_VERSION
    is_newer = isinstance(got, int) and got > SCHEMA_VERSION
    step = OLDER if is_older else "Use a newer labscale." if is_newer else next_step
    raise StoreError(f"{path}: schema_version is {got!r}; this labscale reads {SCHEMA_VERSION}. {step}")


def _validated[T](adapter: TypeAdapter[T], stored: Any, path: Path, next_step: str) -> T:
    # Validate JSON text before writing too, so that a reader accepts the same. NaN passes json.dumps on purpose:
    # pydantic then names its place.
    try:
        return adapter.validate_json(json.dumps(stored))
    except ValidationError as error:
        raise StoreError(f"{path} is not valid: {explained(error, skip=1)}. {next_step}") from error
    except (TypeError, ValueError) as error:
        raise StoreError(f"{path}: the result cannot be written as JSON: {error}. {next_step}") from error


def _object(content: bytes, path: Path, next_step: str) -> dict[str, Any]:
    try:
        stored = parsed(content)
    except ValueError as error:
        raise StoreError(f"{path} is corrupt, not JSON: {error}. {next_step}") from error
    if not isinstance(stored, dict):
        raise StoreError(f"{path} contains a {type(stored).__name__} where a JSON object was expected. {next_step}")
    return stored
