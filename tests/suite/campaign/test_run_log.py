"""The run log that a campaign writes, and what the next command makes of a log that a killed one left."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from suite.campaign.folder import Folder
from suite.campaign.run_log import FIRST, head, resume
from suite.campaign.runs.rounds import keep
from suite.campaign.runs.run import Run
from suite.errors import StoreError
from suite.records.folders import RUN_LOG
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.simulated_campaign import PAIR, bench


def lines_of(root: Path) -> list[dict[str, Any]]:
    """Every line, once each is known to have the hash of the line before."""
    texts = (root / RUN_LOG).read_bytes().splitlines(keepends=True)
    lines = [json.loads(text) for text in texts]
    hashes = [hashlib.sha256(text).hexdigest() for text in texts]
    assert [FIRST, *hashes] == [*(line["before"] for line in lines), head(root)]
    return lines


def end(root: Path, index: int, *, uncounted: str | None = None) -> None:
    run_dir = Folder(root=root).run_dir(PAIR, index)
    run_dir.mkdir(parents=True)
    (run_dir / "rank-0.jsonl").write_text(f"{index}")
    keep(Run(case=PAIR, round=index, run_dir=run_dir, uncounted=uncounted), make_record(PAIR, index=index))


def test_runs_that_end_together_make_one_chain_with_the_hashes_of_their_files(tmp_path: Path) -> None:
    end(tmp_path, 16, uncounted="warm-up")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda index: end(tmp_path, index), range(16)))
    lines = lines_of(tmp_path)
    assert {line["run"] for line in lines} == {f"{PAIR.case_id}/r{index}" for index in range(16)}
    for line in lines:
        paths = (tmp_path / "raw" / line["run"] / name for name in ("record.json", "rank-0.jsonl"))
        assert line["files"] == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_the_same_command_goes_on_with_the_chain(tmp_path: Path) -> None:
    changed_ns = []
    for rounds in (2, 2, 3):
        bench(tmp_path, rounds=rounds)
        changed_ns.append((tmp_path / RUN_LOG).stat().st_mtime_ns)
        assert [line["run"] for line in lines_of(tmp_path)] == [f"{PAIR.case_id}/r{index}" for index in range(rounds)]
    assert not any("late" in line for line in lines_of(tmp_path))
    assert changed_ns[0] == changed_ns[1]


@pytest.mark.parametrize("left", [50, 0])
def test_a_torn_line_is_cut_off_and_its_run_is_appended_late(tmp_path: Path, left: int) -> None:
    for index in range(2):
        end(tmp_path, index)
    log = tmp_path / RUN_LOG
    first, second = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(first + second[:left])
    for _ in range(2):
        resume(tmp_path)
        assert [(line["run"], "late" in line) for line in lines_of(tmp_path)] == [
            (f"{PAIR.case_id}/r0", False), (f"{PAIR.case_id}/r1", True),
        ]  # fmt: skip


def test_a_damaged_record_has_no_line_and_a_damaged_log_is_refused(tmp_path: Path) -> None:
    end(tmp_path, 0)
    (tmp_path / "raw" / PAIR.case_id / "r0" / "record.json").write_text("{}")
    resume(tmp_path)
    assert len(lines_of(tmp_path)) == 1
    (tmp_path / RUN_LOG).write_bytes(b"{}\n")
    with pytest.raises(StoreError, match="line 1"):
        resume(tmp_path)
