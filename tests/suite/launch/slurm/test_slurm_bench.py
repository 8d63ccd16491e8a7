"""``bench --launcher slurm`` on a real Slurm with the real worker: to its end, and through faults."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.records.store import read_case, read_record
from suite.schema.record import RunRecord
from tests.fixtures.machines.slurm_cluster import SlurmCluster
from tests.fixtures.runs.bench_runs import listen_to_ctrl_c
from tests.fixtures.runs.real_runs import MARK, events, marked_processes, wait_until

pytestmark = pytest.mark.worker

ENDLESS: Final = 100_000
START_TIMEOUT_S: Final = 120.0
END_TIMEOUT_S: Final = 300.0  # from a fault to the end of the command, which may train once more
MATRIX: Final = """
description = "one series"
rounds = 1
seed = 42

[[series]]
name = "cartpole"
title = "Cartpole"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 64
topologies = ["2x1"]
iterations = {iterations}
"""
CASE: Final = "cartpole/rsl_rl-kitless-cpu-n128-2x1"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """``bench`` on the login machine of a cluster, with one results folder."""

    slurm: SlurmCluster
    folder: Path
    iterations: int
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def run_dir(self) -> Path:
        return self.out / "raw" / CASE / "r0"

    @property
    def record(self) -> RunRecord:
        return read_record(self.run_dir / "record.json")

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    @property
    def job_id(self) -> str:
        return str(json.loads((self.run_dir / "slurm" / "job.json").read_text())["job_id"])

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the command; everything it starts, on any node, is marked with the folder."""
        matrix = self.folder / "two_nodes.toml"
        matrix.write_text(MATRIX.format(iterations=self.iterations), encoding="utf-8")
        argv = (sys.executable, "-m", "suite", "bench", "--matrix", str(matrix), "--out", str(self.out))
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                self.slurm.argv(
                    *argv, "--device", "cpu", "--no-report", "--launcher", "slurm", "--time", "20", *options
                ),
                cwd=ROOT,
                env={**self.slurm.environ, MARK: str(self.out)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=listen_to_ctrl_c,  # noqa: PLW1509  (one system call)
            )
        self.started.append(process)
        return process

    def commands(self) -> list[psutil.Process]:
        """The command itself, not what brought it to its host."""
        ours = marked_processes(self.out)
        return [process for process in ours if process.name() != "nsenter" and "bench" in process.cmdline()]

    def await_start(self) -> None:
        wait_until(lambda: events(self.run_dir, 0), timeout_s=START_TIMEOUT_S, what=f"rank 0 starts:\n{self.said}")

    def end(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the command; whatever it met, nothing of it is left."""
        exit_code = process.wait(END_TIMEOUT_S)
        assert marked_processes(self.out) == [], self.said
        return exit_code


@pytest.fixture
def bench(slurm: SlurmCluster, worker: Worker, tmp_path: Path) -> Iterator[Bench]:
    """A campaign that does not end by itself."""
    assert worker.python.exists()  # installed before any clock runs
    bench = Bench(slurm=slurm, folder=tmp_path, iterations=ENDLESS)
    yield bench
    for process in bench.commands():  # of a test that failed
        process.kill()
    for started in bench.started:
        started.wait(END_TIMEOUT_S)


def test_two_nodes_train_to_a_complete_record(slurm: SlurmCluster, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    bench = Bench(slurm=slurm, folder=tmp_path, iterations=3)
    assert bench.end(bench.start()) == 0, bench.said
    record = bench.record
    assert (record.outcome, record.exit_code, record.reason) == ("completed", 0, None)
    assert [(rank.rank, rank.local_rank, rank.num_iterations) for rank in record.ranks] == [(0, 0, 3), (1, 0, 3)]
    assert len({rank.parameters_sha256 for rank in record.ranks}) == 1
    assert record.ranks[0].settings["backend"] == "gloo"
    assert record.environment.checks
    assert record.clocks is not None
    assert [abs(clock.offset_s) <= clock.bound_s for clock in record.clocks] == [True], "the nodes are this machine"
    assert read_case(bench.out / "cases" / f"{CASE}.json").completed == (record,)
    assert (bench.run_dir / "slurm" / "differences.txt").read_text().strip() == ""
    nodes = [(bench.run_dir / "logs" / f"node-{index}" / "torchrun.log").read_text() for index in (0, 1)]
    assert nodes[0].startswith("node 0: 10.77.0.11 on eth0\n")
    assert nodes[1].startswith("node 1: 10.77.0.12 on eth0\n")
    before = (bench.run_dir / "record.json").stat().st_mtime_ns
    assert bench.end(bench.start()) == 0
    assert "0 runs to do, 1 finished earlier and kept" in bench.said
    assert (bench.run_dir / "record.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_closed_command_is_gone_on_with_until_the_job_is_cancelled(bench: Bench) -> None:
    """Slurm's controller restarts in between."""
    closed = bench.start()
    bench.await_start()
    job_id = bench.job_id
    for process in bench.commands():
        process.send_signal(signal.SIGINT)
    assert closed.wait(20) == 130, bench.said
    assert f"Slurm job {job_id} goes on without labscale" in bench.said
    again = bench.start()
    wait_until(lambda: f"Slurm job {job_id}: RUNNING" in bench.said, timeout_s=30, what=f"it follows:\n{bench.said}")
    assert bench.job_id == job_id
    bench.slurm.kill_controller()
    wait_until(lambda: "Slurm does not answer, and is asked again" in bench.said, timeout_s=30, what="it is gone")
    bench.slurm.start_controller()
    wait_until(lambda: bench.said.count(f"Slurm job {job_id}: RUNNING") == 2, timeout_s=60, what="it is back")
    bench.slurm.ask("scancel", job_id)
    assert bench.end(again) == 20, bench.said
    assert bench.record.outcome == "lost"
    assert bench.record.reason is not None
    assert bench.record.reason.startswith(f"Slurm job {job_id}: CANCELLED"), bench.record.reason
    assert not bench.run_dir.with_name("r0.lost-1").exists()
    assert bench.end(bench.start()) == 20
    assert "0 runs to do, 1 finished earlier and kept" in bench.said


def test_nodes_that_differ_are_refused_by_name(bench: Bench) -> None:
    """A node with a limit of 512 open files; the other two are enough once it is left out."""
    bench.slurm.kill_node("n3")
    bench.slurm.start_node("n3", through=("prlimit", "--nofile=512:512"))
    bench.slurm.await_idle()
    process = bench.start("--sbatch-option", "nodelist=n2,n3")
    assert bench.end(process) == 18, bench.said
    bench.slurm.kill_node("n3")  # the fixture starts it as it was
    assert "check nofile: ok on n2; failure (low_nofile) on n3" in bench.said
    assert "Keep one of them out (--sbatch-option exclude=NODE)" in bench.said
    assert not list(bench.out.rglob("rank-*.jsonl")), "it trained"
    assert not list(bench.out.rglob("record.json"))


def test_render_only_writes_the_scripts_and_submits_nothing(worker: Worker, tmp_path: Path) -> None:
    """Where there need not be any Slurm."""
    assert worker.python.exists()
    matrix = tmp_path / "two_nodes.toml"
    matrix.write_text(MATRIX.format(iterations=3), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--out", str(tmp_path / "out"), "--device", "cpu", "--render-only"]
    done = subprocess.run(
        [sys.executable, "-m", "suite", *argv, "--launcher", "slurm", "--partition", "moon", "--repeats", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scripts = [tmp_path / "out" / "raw" / CASE / name / "slurm" / "job.sbatch" for name in ("r0", "r1")]
    assert [line for line in done.stdout.splitlines() if line.startswith("sbatch")] == [
        f"sbatch {script}" for script in scripts
    ]
    assert "#SBATCH --partition=moon" in scripts[1].read_text()
    assert not list(tmp_path.rglob("job.json"))
