"""``bench --launcher ray`` with the real worker on two nodes to its end, and a killed rank of a real torchrun."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.ray import run as ray
from suite.launch.watch import PEER_PATIENCE_S
from suite.records.collect import collect
from suite.records.rank_file import rank_path
from suite.records.store import read_case, read_record
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Environment
from tests.conftest import CaseMaker
from tests.fixtures.machines.ray_hosts import HOSTS, RayHosts
from tests.fixtures.runs.real_runs import launch_of, wait_until
from tests.fixtures.runs.two_nodes import CASE, MATRIX, RANK

pytestmark = pytest.mark.worker

START_TIMEOUT_S: Final = 120.0
SLACK_S: Final = 15.0  # of a busy machine


def test_two_nodes_reduce_gradients_to_a_complete_record(ray_hosts: RayHosts, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    out = tmp_path / "out"
    done = subprocess.run(
        ray_hosts.argv(
            *(sys.executable, "-m", "suite", "bench", "--matrix", str(tmp_path / "matrix.toml"), "--out", str(out)),
            *("--device", "cpu", "--no-report", "--launcher", "ray"),
        ),
        env={**os.environ, "RAY_ADDRESS": ray_hosts.ray_address},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    record = read_record(out / "raw" / CASE / "r0" / "record.json")
    assert (record.outcome, record.exit_code, record.reason) == ("completed", 0, None)
    assert [(rank.rank, rank.node, rank.num_iterations) for rank in record.ranks] == [(0, 0, 4), (1, 1, 4)]
    assert record.environment.checks
    assert record.transport is not None
    assert record.transport.interfaces == ("eth0",), "gloo's sockets, as the kernel has them"
    assert read_case(out / "cases" / f"{CASE}.json").completed == (record,)
    assert [ray_hosts.programs(host) for host in HOSTS] == [[], []]


def test_a_killed_rank(
    ray_hosts: RayHosts, worker: Worker, make_case: CaseMaker, environment: Environment, tmp_path: Path
) -> None:
    launch = launch_of(worker, make_case(nnodes=2, nproc_per_node=1), tmp_path / "r0")
    (tmp_path / "rank.py").write_text(RANK, encoding="utf-8")
    *torchrun, _, _, run_dir = launch.argv  # python -m suite.launch.nodes.node … -m tasks.worker RUN_DIR
    launch = replace(launch, argv=(*torchrun, str(tmp_path / "rank.py"), run_dir))
    ended: list[LaunchResult] = []
    thread = threading.Thread(target=lambda: ended.append(ray.run(launch, say=print)))
    thread.start()
    wait_until(
        lambda: ended or all(rank_path(tmp_path / "r0", rank).exists() for rank in (0, 1)),
        timeout_s=START_TIMEOUT_S,
        what="both ranks go on",
    )
    assert not ended, ended
    ray_hosts.find("n2", "rank.py", without="tasks.torchrun").kill()
    thread.join(PEER_PATIENCE_S + launch.grace_s + SLACK_S)
    (result,) = ended
    record = collect(tmp_path / "r0", launch.case, 0, result, environment)
    assert record.outcome == "crashed"
    assert record.reason is not None
    assert "killed by signal 9" in record.reason
    assert [ray_hosts.programs(host) for host in HOSTS] == [[], []]
