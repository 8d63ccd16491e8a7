"""The same campaign: its rounds are not fixed, and are decided as if it had never been interrupted."""

import json
import shutil
from pathlib import Path

import pytest

from suite.store import load_results, read_case, read_record
from tests.bench_runs import CASE, TWIN, Bench, Stage

pytestmark = pytest.mark.worker


def test_what_was_finished_when_it_was_stopped_is_kept(
    interrupted_campaign: Stage, killed_campaign: Stage, finished_campaign: Stage
) -> None:
    assert "2 runs to do, " in interrupted_campaign.said
    assert f"[4/4] {CASE} round 1 starting" in interrupted_campaign.said
    for later in (killed_campaign, finished_campaign):
        assert "0 runs to do, 2 finished earlier and kept" in later.said
        assert f"[1/1] {CASE} round 1 starting" in later.said
    assert f"[1/1] {CASE} round 1: completed" in finished_campaign.said


def test_a_case_is_stored_with_the_reason_why_it_ended(finished_campaign: Stage) -> None:
    (result, _) = load_results(finished_campaign.bench.out)
    assert result.case.case_id == CASE
    assert [record.round for record in result.completed] == [0, 1]
    assert result.ended_because is not None
    assert result.ended_because.startswith(
        "the budget of 2 rounds is spent: no exact interval of the median from 2 rounds"
    )
    assert f"rounds: {result.ended_because}" in finished_campaign.said


def test_the_twin_is_another_measurement_of_the_same(finished_campaign: Stage) -> None:
    bench = finished_campaign.bench
    twin = read_case(bench.out / "a_a" / f"{TWIN}.json")
    assert len(twin.completed) == 2
    hashes = {
        read_record(bench.out / "raw" / case_id / f"r{index}" / "record.json").ranks[0].parameters_sha256
        for case_id in (CASE, TWIN)
        for index in (0, 1)
    }
    assert None not in hashes
    noise = json.loads((bench.out / "noise.json").read_text(encoding="utf-8"))
    (pair,) = noise["pairs"]
    assert (pair["case_id"], len(pair["times_s"]), len(pair["twin_times_s"])) == (CASE, 2, 2)
    first, second, third, fourth = sorted(pair["times_s"] + pair["twin_times_s"])
    assert noise["noise_budget"] == pytest.approx((third + fourth) / (first + second) - 1)  # the two fast, the two slow
    assert "Noise budget: " in finished_campaign.said


def test_fewer_rounds_are_refused(finished_campaign: Stage) -> None:
    bench = finished_campaign.bench
    assert bench.run("--target-precision", "0.5") == 13
    assert f"{bench.out} was begun with 1 to 2 rounds until 0.0001 % for each case, now it is 1 to 2" in bench.said()
    assert "ask for at least as many, or choose another folder with --out" in bench.said()
    assert bench.snapshot() == finished_campaign.files


def test_more_rounds_are_added_to_what_is_finished(finished_campaign: Stage, tmp_path: Path) -> None:
    shutil.copytree(finished_campaign.bench.out, tmp_path / "out")
    bench = Bench(matrix=finished_campaign.bench.matrix, out=tmp_path / "out")
    before = read_case(bench.case_path(CASE))
    assert bench.run("--repeats", "3", "--case", CASE) == 0
    assert "1 run to do, 2 finished earlier and kept" in bench.said()
    result = read_case(bench.case_path(CASE))
    assert [record.round for record in result.completed] == [0, 1, 2]
    assert result.rounds[:2] == before.rounds
    assert result.ended_because == "as many rounds as were asked for; at first 2 rounds"
    aside = bench.case_path(CASE).with_name(f"{bench.case_path(CASE).name}.superseded-1")
    assert aside.read_bytes() == (finished_campaign.bench.case_path(CASE)).read_bytes()
