"""Reads and writes results: a RunRecord per round while a campaign runs, a pytest-benchmark document per finished case.

Every file is validated once before it is written and once after it is read. It appears complete or not at all, and is
never overwritten. Samples are rounded to 9 significant digits when the record of their round is written, before
anything is computed from them, so that a case's file has the same numbers that pytest-benchmark saw. Numbers that are
not finite never reach a file.
"""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from suite.errors import StoreError
from suite.files.input_file import read_input
from suite.records import validation
from suite.records.folders import case_files
from suite.replay.session import replay
from suite.schema.record import SCHEMA_VERSION, Case, CaseResult, RunRecord
from suite.schema.stored import plain

_SIGNIFICANT_DIGITS: Final = 9
AGAIN_ROUND: Final = (
    "Move the file away, and its result below cases/ if there is one, and run again: only this run is repeated."
)
AGAIN_CASE: Final = "Move the file away and run again: the result is stored again from the records of its runs."
_UNWRITTEN: Final = "Nothing was written. This is a fault of the program that made the result; please report it."


def write_record(record: RunRecord, path: Path) -> RunRecord:
    """Write one round as JSON, samples rounded to 9 significant digits; return it rounded, as ``read_record`` does.

    Raises StoreError if ``path`` exists, the record is not valid (NaN, wrong type), or the file
    cannot be written.
    """
    _refuse_existing(path)
    rounded = _rounded(record)
    if fault := validation.fault_of(rounded):
        raise StoreError(f"{path} is not valid: {fault}. {_UNWRITTEN}")
    _write({"schema_version": SCHEMA_VERSION, **plain(rounded)}, path)
    return rounded


def read_record(path: Path) -> RunRecord:
    """Read one round. Raises StoreError if the file is missing, corrupt or not valid, with what to do."""
    return validation.record_of(_content(path), path, AGAIN_ROUND)


def read_record_of(case: Case, round_index: int, path: Path) -> RunRecord:
    """Read one round; raises StoreError also if it is another round, or of another case with the same id."""
    record = read_record(path)
    require_place(record, case, round_index, path)
    return record


def require_place(record: RunRecord, case: Case, round_index: int, path: Path) -> None:
    """Raise StoreError unless it is the record of this round of this case."""
    if (record.case, record.round) != (case, round_index):
        named = [item.name for item in fields(case) if getattr(case, item.name) != getattr(record.case, item.name)]
        other = f" that differs in {', '.join(named)}" if named else ""
        raise StoreError(
            f"{path} is the record of run {record.round} of {record.case.case_id}{other}, where run {round_index}"
            f" of {case.case_id} belongs. Put it where it belongs, or move it away and run again: only this run is"
            " repeated."
        )


def write_cases(results: Mapping[Path, CaseResult]) -> None:
    """Store all rounds of each case as one pytest-benchmark document; a separate pytest session makes all of them.

    Completed rounds are its samples. Rounds with another outcome are rows in ``labscale.runs`` and never
    count as a sample. If no round completed, the document has the same shape with ``benchmarks: []``.

    Raises StoreError if a path exists, a result is not valid, the session fails, or a file cannot be written.
    """
    for path, result in results.items():
        _refuse_existing(path)
        if fault := validation.fault_of_case(result):
            raise StoreError(f"{path} is not valid: {fault}. {_UNWRITTEN}")
    measured = [path for path, result in results.items() if result.completed]
    replayed = dict(zip(measured, replay([results[path] for path in measured]), strict=True))
    for path, result in results.items():
        _write(_document(result, replayed.get(path) or _without_samples()), path)


def read_case(path: Path) -> CaseResult:
    """Read a case. Raises StoreError if the file is missing, corrupt or not valid, with what to do."""
    return validation.case_of(_content(path), path, AGAIN_CASE)


def load_results(folder: Path) -> list[CaseResult]:
    """Return all cases of the set ``folder`` (or below ``folder`` if it is no set), sorted by case id.

    Raises StoreError if there is no case, or several sets, if ``folder`` is a file, if a file is not valid, or if two
    contain the same case.
    """
    paths = case_files(folder)
    if not paths and folder.is_file():
        raise StoreError(f"{folder} is a file, and results are folders. Name one that `nox -s bench` wrote.")
    if not paths:
        raise StoreError(
            f"{folder} contains no results. Run `nox -s bench -- --out {shlex.quote(str(folder))}` first, or name"
            " another folder."
        )
    cases: dict[str, tuple[Path, CaseResult]] = {}
    for path in paths:
        result = read_case(path)
        case_id = result.case.case_id
        if case_id in cases:
            raise StoreError(f"{cases[case_id][0]} and {path} both contain {case_id}. Move one of them away.")
        cases[case_id] = (path, result)
    return [cases[case_id][1] for case_id in sorted(cases)]


# ---- the document of a case ----


def _document(result: CaseResult, replayed: dict[str, Any]) -> dict[str, Any]:
    """Return pytest-benchmark's document with what ran the rounds in place of what stores them, and with the rounds."""
    source = (result.completed or result.rounds)[0]
    versions = {k: v for rank in source.ranks[:1] for k, v in rank.settings.items() if k.startswith("versions.")}
    environment = source.environment
    return replayed | {
        "machine_info": replayed["machine_info"] | versions,
        "commit_info": {"project": "labscale", "id": environment.git_commit, "dirty": environment.git_dirty},
        "labscale": validation.stored_case(result),
    }


def _without_samples() -> dict[str, Any]:
    # pytest-benchmark makes no document of a session without a benchmark.
    return {
        "machine_info": {"node": "redacted"},
        "commit_info": {},
        "benchmarks": [],
        "datetime": datetime.now(UTC).isoformat(),
        "version": version("pytest-benchmark"),
    }


# ---- plain values, text, files ----


def _rounded(record: RunRecord) -> RunRecord:
    ranks = [
        replace(rank, samples={name: tuple(map(_round, column)) for name, column in rank.samples.items()})
        for rank in record.ranks
    ]
    return replace(record, ranks=tuple(ranks))


def _round(sample: float | None) -> float | None:
    # Validation, which follows, judges everything but floats.
    return float(f"{sample:.{_SIGNIFICANT_DIGITS}g}") if isinstance(sample, float) else sample


def layout(value: Any, indent: str = "\n") -> str:
    """Return JSON with one line per key and per column of samples, so that diffs show which column changed."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}: {layout(item, inner)}" for key, item in value.items())
        return "{" + inner + f",{inner}".join(items) + indent + "}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[" + inner + f",{inner}".join(layout(item, inner) for item in value) + indent + "]"
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _content(path: Path) -> bytes:
    try:
        return read_input(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Check the path and its permissions.") from error


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise StoreError(f"{path} exists, and results are never overwritten. Move it away, or choose another folder.")


def _write(document: Mapping[str, Any], path: Path) -> None:
    # A killed writer leaves at most the temporary file, whose name no reader looks for.
    text = layout(document) + "\n"
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            _refuse_existing(path)  # again, because the session of a case takes a while
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}. Check space and permissions, run again."
        ) from error
