"""One real campaign through the command line, interrupted, killed and gone on with, which several modules look at.

Its rounds are not fixed, and one case has more ranks than any machine has cores. What is interrupted, then killed, is
the case's second round.
"""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker
from tests.real_runs import MARK, cartpole, events, marked_processes, matrix_of, wait_until

MATRIX: Final = matrix_of(
    cartpole("rsl_rl", name="only", iterations=10),  # the killed run must not come to its end first
    cartpole("rsl_rl", name="wide", topologies=["1x4096"]),
    precision=1e-6,
    max_rounds=2,
)
CASE: Final = "only/rsl_rl-kitless-cpu-n64-1x1"
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
                preexec_fn=listen_to_ctrl_c,  # noqa: PLW1509  (one system call)
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
        options: tuple[str, ...] = (),
    ) -> int:
        """Start the command, send it alone a signal when the time has come, and return its exit code."""
        process = self.start(*options)
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

    def run_dir(self, case_id: str, round_index: int) -> Path:
        return self.out / "raw" / case_id / f"r{round_index}"

    def case_path(self, case_id: str) -> Path:
        return self.out / "cases" / f"{case_id}.json"

    def snapshot(self) -> Snapshot:
        """Every file with its hash and the time of its last change."""
        return {
            str(path.relative_to(self.out)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }


def listen_to_ctrl_c() -> None:
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
    last_run_events: frozenset[str]


def stage(bench: Bench, exit_code: int) -> Stage:
    return Stage(
        bench=bench,
        exit_code=exit_code,
        said=bench.said(),
        files=bench.snapshot(),
        left_running=tuple(process.pid for process in marked_processes(bench.out)),
        last_run_events=last_run_events(bench),
    )


def last_run_events(bench: Bench) -> frozenset[str]:
    """How far the run has come that is interrupted, killed, and at last finished."""
    return frozenset(found["event"] for found in events(bench.run_dir(CASE, 1), 0))


@pytest.fixture(scope="session")
def interrupted_campaign(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Ctrl-C while the last run starts up."""
    assert worker.python.exists()  # installed before any clock runs
    folder = tmp_path_factory.mktemp("campaign")
    bench = Bench(matrix=folder / "two.toml", out=folder / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")

    def starts() -> bool:
        return "phase" in last_run_events(bench)

    exit_code = bench.stop(signal.SIGINT, starts, "the last run starts up", timeout_s=4 * START_TIMEOUT_S)
    return stage(bench, exit_code)


@pytest.fixture(scope="session")
def killed_campaign(interrupted_campaign: Stage) -> Stage:
    """The next attempt's command line is killed while the last run trains."""
    bench = interrupted_campaign.bench
    aside = bench.run_dir(CASE, 1).with_name("r1.interrupted-1")

    def trains() -> bool:
        return aside.exists() and "iteration" in last_run_events(bench)

    exit_code = bench.stop(signal.SIGKILL, trains, "the last run trains")
    wait_until(lambda: not marked_processes(bench.out), timeout_s=ORPHANS_END_S, what="the orphans end by themselves")
    return stage(bench, exit_code)


@pytest.fixture(scope="session")
def finished_campaign(killed_campaign: Stage) -> Stage:
    return stage(killed_campaign.bench, killed_campaign.bench.run())
