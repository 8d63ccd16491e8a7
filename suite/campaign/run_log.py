"""The run log ``OUT/runs.log``: one JSON object a line for each run that ended, with the hash of the line before.

A run that is left out, exchanged or moved afterwards breaks this chain. ``submit`` publishes the log, and
``reports.verification.rules`` follows it. ``run_sha256`` is of what a published run keeps unchanged, ``files`` of
what stays in ``OUT/raw``. A hash of a line includes its end, so ``tail -n 1 runs.log | sha256sum`` gives the last one.
"""

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Final, TypedDict

from pydantic import TypeAdapter

from suite.errors import StoreError
from suite.files.input_file import read_input
from suite.files.json_file import read_json_lines
from suite.records import store
from suite.records.folders import RAW, RUN_LOG
from suite.schema.record import RunRecord
from suite.schema.stored import plain

FIRST: Final = "0" * 64  # what the first line has in place of a hash
_RECORD: Final = "record.json"
_KEPT: Final = ("run", "outcome", "started_utc", "wall_time_s", "readings")  # no text, which `submit` may replace
_LOCK: Final = Lock()  # the runs of a block end in threads


class _Line(TypedDict):
    """What is read of a line."""

    run: str
    files: dict[str, str]


_LINE: Final = TypeAdapter(_Line)


def append(run_dir: Path, record: RunRecord, *, late: bool = False) -> None:
    """Append the line of a run, from its record as it is stored; ``late``: this was not done when the run ended.

    Raises:
        StoreError: the log cannot be read or written.
    """
    root = run_dir.parents[3]  # OUT/raw/<series>/<case>/r<round>
    try:
        line = {
            "run": run_dir.relative_to(root / RAW).as_posix(),
            "logged_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "outcome": record.outcome,
            "run_sha256": run_sha256(record),
            "files": {path.name: _sha256(path) for path in [run_dir / _RECORD, *sorted(run_dir.glob("*.jsonl"))]},
            **({"late": True} if late else {}),
        }
        with _LOCK, (root / RUN_LOG).open("ab") as log:
            line["before"] = head(root) or FIRST
            log.write(json.dumps(line).encode() + b"\n")
            log.flush()
            os.fsync(log.fileno())
    except OSError as error:
        raise _unusable(root, error) from error


def run_sha256(record: RunRecord) -> str:
    """The hash of a run's samples, readings, outcome and times, as its record and its stored case both have them."""
    stored = plain(record)
    content = {name: stored[name] for name in _KEPT}
    content |= {"configuration_id": record.case.case_id, "samples": [rank["samples"] for rank in stored["ranks"]]}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def resume(root: Path) -> None:
    """Cut off a line whose writer was killed, and append each run that has ended and has no line.

    Raises:
        StoreError: the log has another line that is none, or cannot be read or written.
    """
    path = root / RUN_LOG
    logged = set()
    try:
        if path.exists():
            content = read_input(path)
            if not content.endswith(b"\n"):
                os.truncate(path, content.rfind(b"\n") + 1)
            lines, corrupt = read_json_lines(path, _LINE)
            if corrupt:
                raise StoreError(
                    f"{root}: {corrupt}. The log is never edited: restore it, or move it away and run the same command"
                    " again, which appends every run that has ended as a late one."
                )
            logged = {(line["run"], line["files"].get(_RECORD)) for line in lines}
        ended = [path for path in (root / RAW).glob(f"*/*/r*/{_RECORD}") if path.parent.name[1:].isdecimal()]
        missing = [
            path
            for path in sorted(ended, key=lambda path: path.stat().st_mtime)
            if (path.parent.relative_to(root / RAW).as_posix(), _sha256(path)) not in logged
        ]
    except OSError as error:
        raise _unusable(root, error) from error
    for path in missing:
        try:
            record = store.read_record(path)
        except StoreError:
            continue  # damaged: whoever needs this run says so
        append(path.parent, record, late=True)


def head(root: Path) -> str | None:
    """The hash of the log's last line; None without a line."""
    path = root / RUN_LOG
    lines = read_input(path).splitlines(keepends=True) if path.exists() else []
    return hashlib.sha256(lines[-1]).hexdigest() if lines else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_input(path)).hexdigest()


def _unusable(root: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{error.filename or root / RUN_LOG} cannot be read or written: {error.strerror}. Check space and permissions,"
        " and run the same command again: what has ended is kept, and the log goes on with it."
    )
