"""``bench --nodes n1,n2`` with the real worker on two hosts to its end, and real torchruns through each fault.

What runs to its end is the control that reduces gradients alone, with real environments. The ranks that meet faults
reduce tensors instead of training, which the real ones do after a much longer start.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from suite.errors import LabscaleError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.nodes.agent import SILENCE_S
from suite.launch.ssh import run as ssh
from suite.launch.watch import PEER_PATIENCE_S
from suite.records.collect import collect
from suite.records.network import NEEDED_S
from suite.records.rank_file import rank_path
from suite.records.store import read_case, read_record
from suite.records.telemetry_file import read_telemetry, telemetry_path
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Environment, Launch, RunRecord
from tests.conftest import CaseMaker
from tests.fixtures.machines.ssh_hosts import HOSTS, SshHosts
from tests.fixtures.runs.real_runs import launch_of, wait_until
from tests.fixtures.runs.two_nodes import CASE, MATRIX, RANK

pytestmark = pytest.mark.worker

START_TIMEOUT_S: Final = 120.0
SLACK_S: Final = 15.0  # of a busy machine


def test_two_hosts_reduce_gradients_to_a_complete_record(ssh_hosts: SshHosts, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    out = tmp_path / "out"
    done = subprocess.run(
        ssh_hosts.argv(
            *(sys.executable, "-m", "suite", "bench", "--matrix", str(tmp_path / "matrix.toml"), "--out", str(out)),
            *("--device", "cpu", "--no-report"),
            *("--nodes", ",".join(HOSTS), "--ssh-config", str(ssh_hosts.config)),
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "n1 is 10.77.0.11 on eth0; n2 is 10.77.0.12 on eth0. Head: n1" in done.stdout
    run_dir = out / "raw" / CASE / "r0"
    record = read_record(run_dir / "record.json")
    assert (record.outcome, record.exit_code, record.reason) == ("completed", 0, None)
    assert [(rank.rank, rank.local_rank, rank.num_iterations) for rank in record.ranks] == [(0, 0, 4), (1, 0, 4)]
    reduced_gradients_alone(record)
    assert record.environment.checks
    assert [rank.node for rank in record.ranks] == [0, 1]
    assert record.clocks is not None
    (clock,) = record.clocks  # both hosts are this machine, so the truth is known
    assert clock.node == 1
    assert abs(clock.offset_s) <= clock.bound_s < NEEDED_S
    assert clock.drift_s is not None
    assert record.transport is not None
    assert record.transport.interfaces == ("eth0",), "gloo's sockets, as the kernel has them"
    assert record.transport.interconnect == "emulated (ethernet)"
    for node in (0, 1):
        seen = read_telemetry(telemetry_path(run_dir, node))
        assert seen is not None
        readings = [reading for sample in seen.samples for reading in sample.ranks]
        assert {reading.rank for reading in readings} == {node}, "each sampler sees the ranks of its host"
        assert any(reading.memory_gb for reading in readings)
    assert read_case(out / "cases" / f"{CASE}.json").completed == (record,)
    logs = [(run_dir / "logs" / f"node-{index}" / "torchrun.log").read_text() for index in (0, 1)]
    assert [log.splitlines()[0] for log in logs] == ["node 0: 10.77.0.11 on eth0", "node 1: 10.77.0.12 on eth0"]
    nothing_left(ssh_hosts)


def reduced_gradients_alone(record: RunRecord) -> None:
    """The agent's gradient, once for each of its optimiser steps, and nothing besides."""
    for rank in record.ranks:
        assert set(rank.samples["all_reduce_calls"]) == {None, float(record.case.optimiser_steps)}
        # Two networks of 4-32-32 with one output each, and one standard deviation: all in float32.
        size_bytes = 4 * (2 * (4 * 32 + 32 + 32 * 32 + 32 + 32 + 1) + 1)
        assert set(rank.samples["all_reduce_bytes"]) == {None, size_bytes * record.case.optimiser_steps}
        assert rank.samples["environment_step_time_s"] == (None,) * 4


def nothing_left(ssh_hosts: SshHosts) -> None:
    """Wait until no program runs on either host; a program may take a moment to end."""
    wait_until(lambda: not any(map(ssh_hosts.programs, HOSTS)), timeout_s=5, what="nothing is left on the hosts")


@dataclass(frozen=True, kw_only=True)
class Endless:
    """Ranks that do not end by themselves, in a thread of the test."""

    launch: Launch
    thread: threading.Thread
    ended: list[LaunchResult]

    def record(self, environment: Environment, *, within_s: float) -> RunRecord:
        self.thread.join(within_s)
        assert self.ended, f"not within {within_s:g} s"
        return collect(Path(self.launch.run_dir), self.launch.case, 0, self.ended[0], environment)


@pytest.fixture
def endless(
    ssh_hosts: SshHosts, worker: Worker, make_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Endless]:
    """Both ranks are at work."""
    monkeypatch.setenv("PATH", str(ssh_hosts.ssh_program(tmp_path / "bin")), prepend=":")
    launch = launch_of(worker, make_case(nnodes=2, nproc_per_node=1), tmp_path / "r0")
    (tmp_path / "rank.py").write_text(RANK, encoding="utf-8")
    *torchrun, _, _, run_dir = launch.argv  # python -m suite.launch.nodes.node … -m tasks.worker RUN_DIR
    launch = replace(launch, argv=(*torchrun, str(tmp_path / "rank.py"), run_dir))
    place = ssh.SshPlace(hosts=HOSTS, config=ssh_hosts.config, say=print)
    files = [rank_path(tmp_path / "r0", rank) for rank in (0, 1)]
    ended: list[LaunchResult] = []
    stop = threading.Event()

    def run() -> None:
        with contextlib.suppress(LabscaleError):  # the test sees that there is no result
            ended.append(ssh.run(launch, place=place, stop=stop))

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(
        lambda: all(path.exists() and path.stat().st_size for path in files),
        timeout_s=START_TIMEOUT_S,
        what="both ranks go on",
    )
    yield Endless(launch=launch, thread=thread, ended=ended)
    stop.set()
    thread.join(60)


def test_a_killed_rank(ssh_hosts: SshHosts, endless: Endless, environment: Environment) -> None:
    *_, program, _ = endless.launch.argv
    ssh_hosts.find("n2", program, without="tasks.torchrun").kill()
    record = endless.record(environment, within_s=PEER_PATIENCE_S + endless.launch.grace_s + SLACK_S)
    assert record.outcome == "crashed"
    assert record.reason is not None
    assert "killed by signal 9" in record.reason
    nothing_left(ssh_hosts)


def test_a_killed_agent(ssh_hosts: SshHosts, endless: Endless, environment: Environment) -> None:
    """torchrun's ranks outlive it, but not the guard's care."""
    ssh_hosts.find("n2", "tasks.torchrun").kill()
    record = endless.record(environment, within_s=PEER_PATIENCE_S + endless.launch.grace_s + SLACK_S)
    assert (record.outcome, record.reason) == ("crashed", "torchrun on node 1 was killed by signal 9 (Killed)")
    nothing_left(ssh_hosts)


@pytest.mark.slow
def test_a_cut_link(ssh_hosts: SshHosts, endless: Endless, environment: Environment) -> None:
    """The host that nobody can reach ends its part by itself."""
    ssh_hosts.link("n2", "down")
    bound_s = time.monotonic() + SILENCE_S + endless.launch.grace_s + SLACK_S
    record = endless.record(environment, within_s=bound_s - time.monotonic())
    assert record.outcome == "lost"
    assert record.reason is not None
    assert "node 1" in record.reason.partition(";")[0]
    assert ssh_hosts.programs("n1") == []
    wait_until(lambda: ssh_hosts.programs("n2") == [], timeout_s=bound_s - time.monotonic(), what="n2 ends its part")
