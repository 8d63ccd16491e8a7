"""``env_check --nodes`` inside allocations of a real Slurm, whose nodes agree, differ or die."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import psutil

from tests.fixtures.machines.slurm_cluster import SlurmCluster
from tests.fixtures.runs.real_runs import wait_until

CHECK: Final = (sys.executable, "-m", "suite", "env_check", "--device", "cpu", "--nodes")


def lines_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that say something, without the table's spaces.

    And without what else is at work: the nodes are one machine, on which each sees the other's check, and other tests.
    """
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if re.search(r"\w", line)]
    return [re.sub(r"warning cpu_load: host_busy$", "ok", line).replace(", cpu_load: host_busy", "") for line in lines]


def test_nodes_that_agree(slurm: SlurmCluster) -> None:
    done = slurm.run("salloc", "--nodelist=n1,n2", *CHECK)
    assert lines_of(done) == ["node verdict faults", "n1 ok", "n2 ok", "2 nodes are alike."], done.stderr
    assert done.returncode == (1 if "host_busy" in done.stdout else 0)


def test_a_node_that_differs_is_named(slurm: SlurmCluster) -> None:
    """A node with one core and a limit of 512 open files, both real."""
    slurm.kill_node("n3")
    slurm.start_node("n3", through=("taskset", "--cpu-list", "0", "prlimit", "--nofile=512:512"))
    slurm.await_idle()
    done = slurm.run("salloc", "--nodelist=n1,n2,n3", *CHECK)
    slurm.kill_node("n3")  # the fixture starts it as it was
    header, *nodes = lines_of(done)[:4]
    assert header == "node verdict faults", done.stderr
    assert nodes == ["n1 ok", "n2 ok", "n3 failure nofile: low_nofile"]
    assert "differs check nofile: ok on n1, n2; failure (low_nofile) on n3" in lines_of(done)
    if (num_cpus := psutil.cpu_count()) != 1:
        assert f"differs cores: {num_cpus} on n1, n2; 1 on n3" in lines_of(done)
    assert done.returncode == 2


def test_a_dead_node_is_named_and_the_others_still_answer(slurm: SlurmCluster, tmp_path: Path) -> None:
    """A node that dies after the allocation, while Slurm still believes in it."""
    is_dead = tmp_path / "is_dead"
    after = ("sh", "-c", 'while ! [ -e "$0" ]; do sleep 0.1; done; exec "$@"', str(is_dead), *CHECK)
    allocated = subprocess.Popen(
        slurm.argv("salloc", "--nodelist=n2,n3", "--no-kill", *after),
        env=slurm.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: "n[2-3]" in slurm.ask("squeue", "--noheader"), timeout_s=10, what="an allocation")
        slurm.kill_node("n3")
    finally:
        is_dead.touch()
        stdout, stderr = allocated.communicate(timeout=90)
    done = subprocess.CompletedProcess(allocated.args, allocated.returncode, stdout, stderr)
    header, alive, *folded = lines_of(done)
    dead = " ".join(folded)
    assert (header, alive) == ("node verdict faults", "n2 ok"), stderr
    assert dead.startswith("n3 failure no_report: exit code "), dead
    assert "failed on node n3: Communication connection failure. Run env_check on n3 itself" in dead
    assert done.returncode == 2


ASK: Final = """
import os, sys
from pathlib import Path
from suite.env_check.nodes import collect_slurm
command = ("sh", "-c", f"sleep 6; exec {sys.executable} -m suite env_check --device cpu --json")
collected = collect_slurm(command, nodes=("n2", "n3"), folder=Path(sys.argv[1]), environ=os.environ)
print(*collected.reports, *(f"{failure.node}: {failure.message}" for failure in collected.failures), sep="\\n")
"""


def test_a_check_that_takes_longer_than_srun_tries_to_reach_a_dead_node_answers_too(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    """srun gives up on the dead one after some seconds, and then ends what it started on the others."""
    slurm.kill_node("n3")
    done = slurm.run("salloc", "--nodelist=n2,n3", "--no-kill", sys.executable, "-c", ASK, str(tmp_path))
    alive, dead = done.stdout.splitlines()
    assert alive == "n2", done.stderr
    assert dead.startswith("n3: exit code ")
