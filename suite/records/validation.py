"""Makes records and cases of what is stored, or says which file is not valid, why, and what to do next.

Every function raises StoreError with the path, the fault, and ``next_step``. ``suite.records.store`` calls them before
it writes and after it reads.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypedDict

from pydantic import TypeAdapter, ValidationError

from suite.errors import StoreError
from suite.files.json_file import STRICT, explained, parsed
from suite.records.soundness import fault_of_record
from suite.schema.record import SCHEMA_VERSION, CaseResult, RunRecord

KNOWN_SCHEMA_VERSIONS: Final = tuple(range(1, SCHEMA_VERSION + 1))

# pydantic accepts no configuration for a plain dataclass, but passes on the one of a tuple that contains it.
_RECORD: Final = TypeAdapter(tuple[RunRecord], config=STRICT)
_CASE: Final = TypeAdapter(tuple[CaseResult], config=STRICT)


class _OfLabscale(TypedDict):
    """What a document of a case holds besides what pytest-benchmark writes."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    schema_version: int
    suite_version: str
    no_benchmarks_because: str | None
    case_result: CaseResult


class _Document(TypedDict):
    labscale: _OfLabscale


_DOCUMENT: Final = TypeAdapter(_Document)


def record_of(content: bytes, path: Path, next_step: str) -> RunRecord:
    """Return the record that a file contains."""
    return checked_record(_object(content, path, next_step), path, next_step)


def case_of(content: bytes, path: Path, next_step: str) -> CaseResult:
    """Return the case that a file contains. Its rounds may not be sound: see ``require_sound``."""
    try:
        stored = _DOCUMENT.validate_json(content)["labscale"]
    except ValidationError:
        return _case_step_by_step(content, path, next_step)
    _check_version(stored["schema_version"], path, next_step)
    return _consistent(stored["case_result"], path, next_step)


def _case_step_by_step(content: bytes, path: Path, next_step: str) -> CaseResult:
    """Read what is no document as labscale writes it, to name what is wrong with it. Takes three times as long."""
    stored = _object(content, path, next_step).get("labscale")
    if not isinstance(stored, dict) or "case_result" not in stored:
        raise StoreError(f"{path} is not a case stored by labscale: it has no labscale.case_result. {next_step}")
    _check_version(stored.get("schema_version"), path, next_step)
    return checked_case(stored["case_result"], path, next_step)


def checked_record(plain: Any, path: Path, next_step: str) -> RunRecord:
    """Return the record that plain values make, in the current schema."""
    _check_version(plain.get("schema_version"), path, next_step)
    record = _validated(_RECORD, plain, path, next_step)
    if fault := fault_of_record(record):
        raise StoreError(f"{path} is not valid: {fault}. {next_step}")
    return _upgraded(record)


def require_sound(result: CaseResult, path: Path, next_step: str) -> CaseResult:
    """Return ``result``; raise StoreError with the first fault of its rounds."""
    for record in result.rounds:
        if fault := fault_of_record(record):
            raise StoreError(f"{path} is not valid: of round {record.round}, {fault}. {next_step}")
    return result


def _upgraded(record: RunRecord) -> RunRecord:
    """Return a record in the current schema; fields that an older one lacks have their defaults."""
    return replace(record, schema_version=SCHEMA_VERSION)


def checked_case(plain: Any, path: Path, next_step: str) -> CaseResult:
    """Return the case that plain values make, in the current schema. Its rounds may not be sound."""
    return _consistent(_validated(_CASE, plain, path, next_step), path, next_step)


def _consistent(result: CaseResult, path: Path, next_step: str) -> CaseResult:
    """Return ``result`` in the current schema; raise StoreError if its rounds are not those of one case."""
    if not result.rounds:
        raise StoreError(
            f"{path}: {result.case.case_id} has no rounds; a case that cannot run has a skipped one. {next_step}"
        )
    for record in result.rounds:
        _check_version(record.schema_version, path, next_step)
        if record.case != result.case:
            raise StoreError(f"{path}: round {record.round} is of another case than {result.case.case_id}. {next_step}")
    numbers = [record.round for record in result.rounds]
    if len(set(numbers)) != len(numbers):
        raise StoreError(
            f"{path}: the rounds of {result.case.case_id} are {numbers}; each may be there once. {next_step}"
        )
    return replace(result, rounds=tuple(_upgraded(record) for record in result.rounds))


def _check_version(got: object, path: Path, next_step: str) -> None:
    if got not in KNOWN_SCHEMA_VERSIONS:
        known = ", ".join(map(str, KNOWN_SCHEMA_VERSIONS))
        raise StoreError(
            f"{path}: schema_version is {got!r}; this labscale knows {known}."
            f" {'Use a newer labscale.' if isinstance(got, int) and got > SCHEMA_VERSION else next_step}"
        )


def _validated[T](adapter: TypeAdapter[tuple[T]], plain: Any, path: Path, next_step: str) -> T:
    # Validate JSON text before writing too, so that a reader accepts the same. NaN passes json.dumps on purpose:
    # pydantic then names its place.
    try:
        return adapter.validate_json(json.dumps([plain]))[0]
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
