"""Which processes a sampler of one of several nodes takes for ranks of its node."""

import os
import subprocess
import sys
import time
from pathlib import Path

from suite.launch.nodes.node import NODE_RANK
from suite.launch.nodes.rank_processes import NodeRankProcesses

PROGRAM = "print(flush=True); import time; time.sleep(600)"


def started(run_dir: Path, *, rank: int, node: int) -> subprocess.Popen[bytes]:
    """What looks like a rank; it runs its program when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "tasks.worker", str(run_dir)],
        env={**os.environ, "RANK": str(rank), NODE_RANK: str(node)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_nodes_that_share_a_machine_see_their_own_ranks_only(tmp_path: Path) -> None:
    ranks = [started(tmp_path, rank=rank, node=rank // 2) for rank in range(4)]
    try:
        for node, own in ((0, [0, 1]), (1, [2, 3])):
            processes = NodeRankProcesses(tmp_path, 2, node=node)
            assert processes.read() == (), "of the instant since it was found"
            time.sleep(0.05)
            assert [reading.rank for reading in processes.read()] == own
    finally:
        for process in ranks:
            process.kill()
            process.communicate()
