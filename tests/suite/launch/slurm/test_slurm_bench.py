"""``bench --launcher slurm`` on a real Slurm with the real worker."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.records.store import read_case, read_record
from tests.fixtures.machines.slurm_cluster import SlurmCluster
from tests.fixtures.runs.real_runs import MARK, cartpole, marked_processes, matrix_of

pytestmark = pytest.mark.worker

MATRIX: Final = matrix_of(cartpole("rsl_rl", topologies=["2x1"]))
CASE: Final = "cartpole/rsl_rl-kitless-cpu-n128-2x1"


def bench(slurm: SlurmCluster, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``bench`` on the login machine of a cluster; whatever it met, nothing of it is left on any node."""
    matrix = folder / "two_nodes.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    argv = (sys.executable, "-m", "suite", "bench", "--matrix", str(matrix), "--out", str(folder / "out"))
    done = subprocess.run(
        slurm.argv(*argv, "--device", "cpu", "--no-report", "--launcher", "slurm", "--time", "20", *options),
        cwd=ROOT,
        env={**slurm.environ, MARK: str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert marked_processes(folder) == [], done.stdout
    return done


def test_two_nodes_train_to_a_complete_record(slurm: SlurmCluster, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    done = bench(slurm, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = tmp_path / "out" / "raw" / CASE / "r0"
    record = read_record(run_dir / "record.json")
    assert (record.outcome, record.exit_code, record.reason) == ("completed", 0, None)
    assert [(rank.rank, rank.local_rank, rank.num_iterations) for rank in record.ranks] == [(0, 0, 3), (1, 0, 3)]
    assert len({rank.parameters_sha256 for rank in record.ranks}) == 1
    assert record.ranks[0].settings["backend"] == "gloo"
    assert record.environment.checks
    assert record.clocks is not None
    assert [abs(clock.offset_s) <= clock.bound_s for clock in record.clocks] == [True], "the nodes are this machine"
    assert read_case(tmp_path / "out" / "cases" / f"{CASE}.json").completed == (record,)
    assert (run_dir / "slurm" / "differences.txt").read_text().strip() == ""
    nodes = [(run_dir / "logs" / f"node-{index}" / "torchrun.log").read_text() for index in (0, 1)]
    assert [log.splitlines()[0] for log in nodes] == ["node 0: 10.77.0.11 on eth0", "node 1: 10.77.0.12 on eth0"]


def test_nodes_that_differ_are_refused_by_name(slurm: SlurmCluster, worker: Worker, tmp_path: Path) -> None:
    """A node with a limit of 512 open files; the other two are enough once it is left out."""
    assert worker.python.exists()
    slurm.kill_node("n3")
    slurm.start_node("n3", through=("prlimit", "--nofile=512:512"))
    slurm.await_idle()
    done = bench(slurm, tmp_path, "--sbatch-option", "nodelist=n2,n3")
    slurm.kill_node("n3")  # the fixture starts it as it was
    assert done.returncode == 18, done.stdout
    output = done.stdout + done.stderr
    assert "check nofile: ok on n2; failure (low_nofile) on n3" in output
    assert "Keep one of them out (--sbatch-option exclude=NODE)" in output
    assert not list(tmp_path.rglob("rank-*.jsonl")), "it trained"
    assert not list(tmp_path.rglob("record.json"))


def test_render_only_writes_the_scripts_and_submits_nothing(worker: Worker, tmp_path: Path) -> None:
    """Where there need not be any Slurm."""
    assert worker.python.exists()
    matrix = tmp_path / "two_nodes.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
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
