"""The run log of a set against its runs: what the chain says of runs that are dropped, exchanged or changed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from reports.verification.rules import FIRST
from suite.records.folders import RUN_LOG
from tests.fixtures.results.damaged_results import RUN, Damage, damage, findings, put, runs
from tests.fixtures.results.finished_campaign import CASE, write_campaign, write_raw

CASE_ID = CASE.removeprefix("cases/").removesuffix(".json")
RUN_0, RUN_1 = f"{CASE_ID}/r0", f"{CASE_ID}/r1"
CHANGED = "the hash of its samples"
NOT_BEGUN = {"outcome": "crashed", "started_utc": None, "wall_time_s": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign of six real runs with its log."""
    return write_raw(write_campaign(tmp_path / "set"))


def in_log(folder: Path) -> list[str]:
    """What is found in the log; a forger makes everything else fit."""
    return [finding.what for finding in findings(folder) if finding.where == RUN_LOG]


def exchange(stored: Any) -> None:
    first, second, *_ = runs(stored)
    first["ranks"], second["ranks"] = second["ranks"], first["ranks"]


def test_texts_and_skipped_runs_are_not_hashed_and_a_set_needs_no_log(folder: Path) -> None:
    damage(folder / CASE, put("labscale/runs/1/telemetry_note", "not published"))
    damage(folder / CASE, lambda stored: runs(stored).append({**runs(stored)[0], "run": 3, "outcome": "skipped"}))
    assert in_log(folder) == []
    (folder / RUN_LOG).unlink()
    assert in_log(folder) == []


def never_started(stored: Any) -> None:
    runs(stored).append({**runs(stored)[0], "run": 3, **NOT_BEGUN})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda stored: runs(stored).pop(1), [RUN_1]),
        (put("labscale/runs/1/run", 3), [RUN_1, f"{CASE_ID}/r3"]),
        (put("labscale/runs/1/started_utc", "2026-11-24T00:00:00Z"), [f"{RUN_1}: {CHANGED}"]),
        (never_started, [f"{CASE_ID}/r3"]),
        (put(f"{RUN}/ranks/1/samples/collection_time_s/0", 1.0), [f"{RUN_0}: {CHANGED}"]),
        (exchange, [f"{RUN_0}: {CHANGED}", f"{RUN_1}: {CHANGED}"]),
        (put("labscale/runs/1/outcome", "invalid"), [f"{RUN_1}: its outcome", f"{RUN_1}: {CHANGED}"]),
    ],
)
def test_a_run_that_is_dropped_changed_or_exchanged_is_named(folder: Path, change: Damage, named: list[str]) -> None:
    damage(folder / CASE, change)
    assert in_log(folder) == named


def test_lines_that_are_dropped_moved_or_edited_break_the_chain(folder: Path) -> None:
    log = folder / RUN_LOG
    first, second, third, *more = log.read_bytes().splitlines(keepends=True)
    edited = first.replace(b"completed", b"invalid")
    for lines, broken in (([first, third], [2]), ([first, third, second], [2, 3, 4]), ([edited, second, third], [2])):
        log.write_bytes(b"".join([*lines, *more]))
        chain = [what for what in in_log(folder) if what.startswith("line")]
        assert chain == [f"line {number}: the hash of the line before" for number in broken]
    log.write_bytes(first[:-20])
    assert in_log(folder) == ["the file"]


def test_a_log_whose_last_line_is_cut_off_is_named(folder: Path) -> None:
    (folder / RUN_LOG).write_bytes((folder / RUN_LOG).read_bytes()[:-9])
    (cut_off,) = (finding.got for finding in findings(folder) if finding.where == RUN_LOG)
    assert cut_off == "cut off in line 6"


@pytest.mark.parametrize(("outcome", "faults"), [("crashed", 0), ("completed", 1)])
def test_a_run_is_repeated_only_if_it_did_not_complete(folder: Path, outcome: str, faults: int) -> None:
    *texts, last = (folder / RUN_LOG).read_bytes().splitlines(keepends=True)
    line = json.loads(last)
    first = json.dumps({**line, "outcome": outcome, "run_sha256": FIRST}).encode() + b"\n"
    again = json.dumps({**line, "before": hashlib.sha256(first).hexdigest()}).encode() + b"\n"
    (folder / RUN_LOG).write_bytes(b"".join([*texts, first, again]))
    assert in_log(folder) == [f"line 7: {line['run']}"] * faults
