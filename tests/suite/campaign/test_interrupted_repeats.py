"""The same campaign: its rounds are not fixed, and are decided as if it had never been interrupted."""

import json
import shutil
from pathlib import Path

import pytest

from suite.records.store import load_results
from tests.fixtures.runs.bench_runs import CASE, Bench, Stage

pytestmark = pytest.mark.worker


def test_what_was_finished_when_it_was_stopped_is_kept(
    interrupted_campaign: Stage, killed_campaign: Stage, finished_campaign: Stage
) -> None:
    assert "1 run to do, " in interrupted_campaign.said
    assert f"[2/2] {CASE} round 1 starting" in interrupted_campaign.said
    for later in (killed_campaign, finished_campaign):
        assert "0 runs to do, 1 finished earlier and kept" in later.said
        assert f"[1/1] {CASE} round 1 starting" in later.said
    assert f"[1/1] {CASE} round 1: completed" in finished_campaign.said


def test_a_case_is_stored_with_the_reason_why_it_ended(finished_campaign: Stage) -> None:
    (result, _) = load_results(finished_campaign.bench.out)
    assert result.case.case_id == CASE
    assert [record.round for record in result.completed] == [0, 1]
    assert "budget of 2 rounds" in (result.ended_because or "")


def test_a_smaller_rule_runs_nothing_and_takes_nothing_away(finished_campaign: Stage, tmp_path: Path) -> None:
    shutil.copytree(finished_campaign.bench.out, tmp_path / "out")
    bench = Bench(matrix=finished_campaign.bench.matrix, out=tmp_path / "out")
    before = bench.snapshot()
    assert bench.run("--target-precision", "0.5", "--no-report") == 0
    assert "0 runs to do, " in bench.said()
    now = bench.snapshot()
    changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    assert {name for name in changed if name.startswith(("raw", "cases"))} == set()
    assert json.loads((bench.out / "campaign.json").read_text())["precision"] == 0.5  # of the last command
