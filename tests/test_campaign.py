"""A campaign through the real command line: interrupted, killed, gone on with, and never the worse for it."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from suite.options import ROOT
from suite.provision import Worker
from suite.store import read_case, read_record
from tests.real_runs import MARK, events, marked_processes, wait_until

pytestmark = pytest.mark.worker

MATRIX: Final = """
description = "two runs, and one that no machine has the cores for"
rounds = 1
seed = 42

[[series]]
name = "first"
title = "Cartpole"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 64
topologies = ["1x1"]
iterations = 3

[[series]]
name = "second"
title = "Cartpole for longer"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 64
topologies = ["1x1"]
iterations = 30

[[series]]
name = "wide"
title = "Cartpole on too many ranks"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 64
topologies = ["1x4096"]
iterations = 3
"""
FIRST: Final = "first/rsl_rl-kitless-cpu-n64-1x1"
SECOND: Final = "second/rsl_rl-kitless-cpu-n64-1x1"
WIDE: Final = "wide/rsl_rl-kitless-cpu-n262144-1x4096"
START_TIMEOUT_S: Final = 240.0  # of a run with cold kernels on a busy machine
ORPHANS_END_S: Final = 40.0  # torchrun gives its ranks 30 s

Snapshot = dict[str, tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """``python -m suite bench`` on one results folder."""

    matrix: Path
    out: Path

    @property
    def log(self) -> Path:
        return self.out.with_name(f"{self.out.name}.log")

    def start(self, *options: str, asset_root: Path | None = None) -> subprocess.Popen[bytes]:
        """Start the command; its output goes to ``log``, and everything it starts is marked with the folder."""
        variables = {} if asset_root is None else {"ISAACSIM_ASSET_ROOT": str(asset_root)}
        argv = (sys.executable, "-m", "suite", "bench", "--matrix", self.matrix, "--out", self.out)
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [*argv, "--device", "cpu", "--no-report", *options],
                cwd=ROOT,
                env={**os.environ, MARK: str(self.out), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_listen_to_ctrl_c,  # noqa: PLW1509  (one system call)
            )

    def run(self, *options: str, asset_root: Path | None = None) -> int:
        return self.start(*options, asset_root=asset_root).wait(timeout=2 * START_TIMEOUT_S)

    def stop(
        self,
        signal_number: signal.Signals,
        when: Callable[[], object],
        what: str,
        *,
        timeout_s: float = START_TIMEOUT_S,
    ) -> int:
        """Start the command, send it alone a signal when the time has come, and return its exit code."""
        process = self.start()
        try:
            wait_until(lambda: process.poll() is not None or when(), timeout_s=timeout_s, what=what)
            assert process.poll() is None, f"it ended before {what}:\n{self.said()}"
            process.send_signal(signal_number)
            return process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def run_dir(self, case_id: str) -> Path:
        return self.out / "raw" / case_id / "r0"

    def case_path(self, case_id: str) -> Path:
        return self.out / "cases" / f"{case_id}.json"

    def snapshot(self) -> Snapshot:
        """Every file with its hash and the time of its last change; the lock is opened by every command."""
        return {
            str(path.relative_to(self.out)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }


def _listen_to_ctrl_c() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and what they start too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The campaign after one more command."""

    bench: Bench
    exit_code: int
    said: str
    files: Snapshot
    left_running: tuple[int, ...]


def stage(bench: Bench, exit_code: int) -> Stage:
    left_running = tuple(process.pid for process in marked_processes(bench.out))
    return Stage(bench=bench, exit_code=exit_code, said=bench.said(), files=bench.snapshot(), left_running=left_running)


def has_event(bench: Bench, event: str) -> bool:
    return any(found["event"] == event for found in events(bench.run_dir(SECOND), 0))


@pytest.fixture(scope="module")
def interrupted(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Ctrl-C while the second run starts up."""
    assert worker.python.exists()  # installed before any clock runs
    folder = tmp_path_factory.mktemp("campaign")
    bench = Bench(matrix=folder / "three.toml", out=folder / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")
    exit_code = bench.stop(signal.SIGINT, lambda: has_event(bench, "phase"), "the second run starts up")
    return stage(bench, exit_code)


@pytest.fixture(scope="module")
def killed(interrupted: Stage) -> Stage:
    """The next attempt's command line is killed while the second run trains."""
    bench = interrupted.bench
    aside = bench.run_dir(SECOND).with_name("r0.interrupted-1")

    def trains() -> bool:
        return aside.exists() and has_event(bench, "iteration")

    exit_code = bench.stop(signal.SIGKILL, trains, "the second run trains")
    wait_until(lambda: not marked_processes(bench.out), timeout_s=ORPHANS_END_S, what="the orphans end by themselves")
    return stage(bench, exit_code)


@pytest.fixture(scope="module")
def finished(killed: Stage) -> Stage:
    return stage(killed.bench, killed.bench.run())


def test_ctrl_c_keeps_what_is_finished_and_leaves_nothing_running(interrupted: Stage) -> None:
    assert interrupted.exit_code == 130, interrupted.said
    assert interrupted.left_running == ()
    assert "Every finished round is kept; run the same command again" in interrupted.said
    assert f"[1/2] {FIRST} round 0: completed" in interrupted.said
    assert read_record(interrupted.bench.run_dir(FIRST) / "record.json").outcome == "completed"
    assert read_case(interrupted.bench.case_path(FIRST)).completed
    assert not (interrupted.bench.run_dir(SECOND) / "record.json").exists()
    assert not interrupted.bench.case_path(SECOND).exists()


def test_a_killed_command_takes_its_ranks_along(killed: Stage) -> None:
    assert killed.exit_code == -signal.SIGKILL, killed.said
    assert killed.left_running == ()
    assert "1 runs to do, 1 finished earlier and kept" in killed.said
    assert not (killed.bench.run_dir(SECOND) / "record.json").exists()
    assert has_event(killed.bench, "iteration")
    assert not has_event(killed.bench, "end"), "the orphans trained to their end, nobody stopped them"


def test_the_same_command_goes_on_to_the_end(interrupted: Stage, finished: Stage) -> None:
    assert finished.exit_code == 0, finished.said
    bench = finished.bench
    of_first = {path: state for path, state in interrupted.files.items() if FIRST in path}
    assert f"raw/{FIRST}/r0/record.json" in of_first
    assert f"cases/{FIRST}.json" in of_first
    assert {path: state for path, state in finished.files.items() if FIRST in path} == of_first
    results = [read_case(path) for path in (bench.out / "cases").rglob("*.json")]
    assert sorted(result.case.case_id for result in results) == [FIRST, SECOND, WIDE]
    (second,) = read_case(bench.case_path(SECOND)).completed
    assert second.ranks[0].num_iterations == 30


def test_every_record_has_what_env_check_said(finished: Stage) -> None:
    (second,) = read_case(finished.bench.case_path(SECOND)).completed
    verdicts = {check.name: check.verdict for check in second.environment.checks}
    assert verdicts["worker_packages"] == verdicts["asset_root"] == verdicts["libc"] == "ok"
    assert "no fault that concerns kitless on cpu" in finished.said


def test_a_machine_that_is_not_fit_is_refused_before_anything_runs(worker: Worker, tmp_path: Path) -> None:
    assert worker.asset_root is not None
    assets = tmp_path / "assets"
    shutil.copytree(worker.asset_root, assets)
    changed = next(iter(json.loads((assets / "manifest.json").read_text(encoding="utf-8"))["files"]))
    (assets / changed).write_bytes(b"something else")
    bench = Bench(matrix=tmp_path / "three.toml", out=tmp_path / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")
    assert bench.run(asset_root=assets) == 18
    assert "asset_root: assets_changed" in bench.said()
    assert "--ignore-env-check" in bench.said()
    assert not bench.out.exists()


def test_interrupted_attempts_are_kept_aside(interrupted: Stage, killed: Stage, finished: Stage) -> None:
    for before, name in ((interrupted, "r0.interrupted-1"), (killed, "r0.interrupted-2")):
        was = f"raw/{SECOND}/r0/rank-0.jsonl"
        assert finished.files[was.replace("/r0/", f"/{name}/")] == before.files[was]


def test_what_cannot_run_is_a_result_with_its_reason(finished: Stage) -> None:
    (record,) = read_case(finished.bench.case_path(WIDE)).rounds
    assert record.outcome == "skipped"
    assert record.reason is not None
    assert record.reason.startswith("needs 4096 CPU cores, one per rank, available: ")
    (row,) = (line for line in finished.said.splitlines() if line.strip().startswith(WIDE))
    assert row.split()[-1] == "skipped"
    assert "0/1" in row


def test_once_more_starts_nothing_and_changes_nothing(finished: Stage) -> None:
    bench = finished.bench
    assert bench.run() == 0
    assert "0 runs to do, 2 finished earlier and kept, 1 cases are skipped here" in bench.said()
    assert bench.snapshot() == finished.files


def test_other_options_are_refused_by_name(finished: Stage) -> None:
    bench = finished.bench
    assert bench.run("--repeats", "2", "--host-label", "desk") == 13
    assert "rounds: there None, now 2" in bench.said()
    assert "host_label: there None, now 'desk'" in bench.said()
    assert "assets:" not in bench.said()  # what is equal is not listed
    assert bench.snapshot() == finished.files


@pytest.mark.parametrize("damaged", ["record", "case"])
def test_a_damaged_file_is_named_and_nothing_is_touched(finished: Stage, tmp_path: Path, damaged: str) -> None:
    shutil.copytree(finished.bench.out, tmp_path / "out")
    bench = Bench(matrix=finished.bench.matrix, out=tmp_path / "out")
    path = bench.case_path(SECOND)
    if damaged == "record":  # it is read for as long as its case is not stored
        path.unlink()
        path = bench.run_dir(SECOND) / "record.json"
    path.write_bytes(path.read_bytes()[:-100])
    before = bench.snapshot()
    assert bench.run() == 14
    assert f"{path} is corrupt, not JSON" in bench.said()
    assert "Move the file away and run again" in bench.said()
    assert bench.snapshot() == before
    assert json.loads((bench.out / "campaign.json").read_text(encoding="utf-8"))["device"] == "cpu"
