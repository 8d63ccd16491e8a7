"""A campaign through the real command line: interrupted, killed, gone on with, filmed, and never the worse for it.

Its rounds are not fixed, and are decided as if it had never been interrupted.
"""

import json
import shutil
import signal
from pathlib import Path
from typing import Final

import pytest

from suite.install.worker import Worker
from suite.records.folders import intact_videos, poster_path, video_path
from suite.records.store import read_case, read_record
from tests.fixtures.runs.bench_runs import CASE, ITERATIONS, MATRIX, STEPS, WIDE, Bench, Stage
from tests.fixtures.runs.worker_probes import run_in_worker
from tests.tasks.test_filming import assert_whole

pytestmark = pytest.mark.worker

FRAMES: Final = ITERATIONS * STEPS // 2  # of every second step
SHOWN: Final = """
import sys
from PIL import Image
print(len(set(Image.open(sys.argv[1]).convert("RGB").getdata())))
"""


def test_ctrl_c_keeps_what_is_finished_and_leaves_nothing_running(interrupted_campaign: Stage) -> None:
    assert interrupted_campaign.exit_code == 130, interrupted_campaign.output
    assert interrupted_campaign.left_running == ()
    assert f"[1/1] {CASE} run 0: completed" in interrupted_campaign.output
    assert read_record(interrupted_campaign.bench.run_dir(CASE, 0) / "record.json").outcome == "completed"
    assert f"raw/{CASE}/r1/rank-0.jsonl" in interrupted_campaign.files
    assert f"raw/{CASE}/r1/record.json" not in interrupted_campaign.files
    assert f"cases/{CASE}.json" not in interrupted_campaign.files


def test_a_killed_command_takes_its_ranks_along(killed_campaign: Stage) -> None:
    assert killed_campaign.exit_code == -signal.SIGKILL, killed_campaign.output
    assert killed_campaign.left_running == ()
    assert "0 runs to do, 1 finished earlier and kept" in killed_campaign.output
    assert f"raw/{CASE}/r1/record.json" not in killed_campaign.files
    assert "iteration" in killed_campaign.last_run_events
    assert "end" not in killed_campaign.last_run_events, "the orphans trained to their end, nobody stopped them"


def test_the_same_command_goes_on_to_the_end(interrupted_campaign: Stage, finished_campaign: Stage) -> None:
    assert finished_campaign.exit_code == 0, finished_campaign.output
    bench = finished_campaign.bench
    first = f"raw/{CASE}/r0/"
    of_first = {path: state for path, state in interrupted_campaign.files.items() if path.startswith(first)}
    assert f"{first}record.json" in of_first
    assert {path: state for path, state in finished_campaign.files.items() if path.startswith(first)} == of_first
    results = [read_case(path) for path in (bench.out / "cases").rglob("*.json")]
    assert sorted(result.case.case_id for result in results) == [CASE, WIDE]
    completed = read_case(bench.case_path(CASE)).completed
    ran = [(record.round, record.ranks[0].num_iterations) for record in completed]
    assert ran == [(0, ITERATIONS), (1, ITERATIONS)]


def test_the_case_is_filmed(finished_campaign: Stage, worker: Worker) -> None:
    out = finished_campaign.bench.out
    ((case_id, video),) = intact_videos(out).items()
    assert case_id == CASE
    assert (video.frames, video.environments) == (FRAMES, 4)
    assert video.duration_s == pytest.approx(FRAMES / 30)
    path = video_path(out, case_id)
    size_px = (video.width_px, video.height_px)
    assert_whole(path, frames=FRAMES, duration_s=video.duration_s, size_px=size_px)
    assert 10_000 < path.stat().st_size < 1_500_000
    assert int(run_in_worker(worker, "-c", SHOWN, str(poster_path(out, case_id)))) > 500  # colours
    assert "1 video: " in finished_campaign.output
    assert json.loads((out / "campaign.json").read_text())["max_rounds"] == 2, "the filmed one is none of them"


def test_every_record_has_what_env_check_said(finished_campaign: Stage) -> None:
    _, second = read_case(finished_campaign.bench.case_path(CASE)).completed
    verdicts = {check.name: check.verdict for check in second.environment.checks}
    assert verdicts["worker_packages"] == verdicts["asset_root"] == verdicts["libc"] == "ok"
    # Other tests keep the host busy, which it may say.
    faults = {name for name, verdict in verdicts.items() if verdict in ("warning", "failure")} - {"cpu_load"}
    assert not faults


def test_a_machine_that_is_not_fit_is_refused_before_anything_runs(worker: Worker, tmp_path: Path) -> None:
    assert worker.asset_root is not None
    assets = tmp_path / "assets"
    shutil.copytree(worker.asset_root, assets)
    changed = next(iter(json.loads((assets / "manifest.json").read_text(encoding="utf-8"))["files"]))
    (assets / changed).write_bytes(b"something else")
    bench = Bench(matrix=tmp_path / "three.toml", out=tmp_path / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")
    assert bench.run(asset_root=assets) == 18
    assert "asset_root: assets_changed" in bench.output()
    assert "--ignore-env-check" in bench.output()
    assert not bench.out.exists()


def test_interrupted_attempts_are_kept_aside(
    interrupted_campaign: Stage, killed_campaign: Stage, finished_campaign: Stage
) -> None:
    for before, name in ((interrupted_campaign, "r1.interrupted-1"), (killed_campaign, "r1.interrupted-2")):
        was = f"raw/{CASE}/r1/rank-0.jsonl"
        assert finished_campaign.files[was.replace("/r1/", f"/{name}/")] == before.files[was]


def test_what_cannot_run_is_a_result_with_its_reason(finished_campaign: Stage) -> None:
    (record,) = read_case(finished_campaign.bench.case_path(WIDE)).rounds
    assert record.outcome == "skipped"
    assert "4096 CPU cores" in (record.reason or "")
    (row,) = (line for line in finished_campaign.output.splitlines() if line.split()[:1] == [WIDE])
    assert row.split()[-1] == "skipped"
    assert "0/1" in row


def test_once_more_starts_nothing_and_changes_nothing(finished_campaign: Stage) -> None:
    bench = finished_campaign.bench
    assert bench.run("--video") == 0
    assert "0 runs to do, 1 finished earlier and kept, 1 configuration skipped here" in bench.output()
    assert bench.snapshot() == finished_campaign.files


def test_a_damaged_record_is_named_and_nothing_is_touched(finished_campaign: Stage, tmp_path: Path) -> None:
    """A record is read for as long as its case is not stored."""
    shutil.copytree(finished_campaign.bench.out, tmp_path / "out")
    bench = Bench(matrix=finished_campaign.bench.matrix, out=tmp_path / "out")
    bench.case_path(CASE).unlink()
    path = bench.run_dir(CASE, 1) / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    before = bench.snapshot()
    assert bench.run() == 14
    assert str(path) in bench.output()
    assert bench.snapshot() == before
    assert json.loads((bench.out / "campaign.json").read_text(encoding="utf-8"))["device"] == "cpu"
