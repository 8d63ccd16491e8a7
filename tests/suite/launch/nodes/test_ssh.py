"""The launcher ``ssh`` on real hosts with a real sshd each; a few lines of Python stand for training."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from suite.errors import SchedulerError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.nodes.agent import SILENCE_S
from suite.launch.nodes.ssh import SshSettings, run
from suite.launch.nodes.supervisor import addresses
from suite.launch.watch import PEER_PATIENCE_S
from suite.records.collect import collect
from suite.records.network import NEEDED_S
from suite.records.store import read_case, read_record
from suite.records.telemetry_file import read_telemetry, telemetry_path
from suite.schema.record import Environment, RunRecord
from tests.fixtures.machines.ssh_hosts import HOSTS, SshHosts
from tests.fixtures.runs.real_runs import launch_of, wait_until
from tests.suite.launch.contract import CASE, MATRIX, SLACK_S, NodesContract, Place, Round

# Ranks of torchrun that reduce a number again and again, each with a log as the real worker has.
RANK: Final = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
open(f"{sys.argv[1]}/started-{os.environ['RANK']}", "w").close()
with open(f"{sys.argv[1]}/rank-{os.environ['RANK']}.jsonl", "w") as log:
    while True:
        dist.all_reduce(torch.ones(1))
        log.write("{}")
        log.flush()
        __import__("time").sleep(0.1)
"""


@pytest.fixture
def place(ssh_hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PATH", str(ssh_hosts.ssh_program(tmp_path / "bin")), prepend=":")
    return Place(
        run=partial(run, settings=SshSettings(nodes=HOSTS, ssh_config=ssh_hosts.config), say=print),
        nnodes=len(HOSTS),
        helpers=lambda: [process for host in HOSTS for process in ssh_hosts.programs(host)],
        lose_node=lambda: ssh_hosts.find("n2", "suite.launch.nodes.agent").kill(),
    )


class TestSsh(NodesContract):
    def test_a_results_folder_that_is_not_shared_is_refused(self, ssh_hosts: SshHosts, stand_in: Round) -> None:
        stand_in.run_dir.mkdir()
        ssh_hosts.on("n2", "mount", "-t", "tmpfs", "tmpfs", str(stand_in.run_dir))
        try:
            with pytest.raises(SchedulerError, match=r"n2 .*--out"):
                stand_in.run()
        finally:
            ssh_hosts.on("n2", "umount", str(stand_in.run_dir))

    def test_a_host_that_is_not_there(self, ssh_hosts: SshHosts, stand_in: Round) -> None:
        settings = SshSettings(nodes=("n1", "nowhere"), ssh_config=ssh_hosts.config)
        with pytest.raises(SchedulerError, match="nowhere"):
            run(stand_in.launch, settings=settings, say=print)

    @pytest.mark.worker
    @pytest.mark.parametrize(
        ("program", "without", "reason"),
        [
            ("{}/rank.py", "tasks.torchrun", "killed by signal 9"),
            ("tasks.torchrun", "", "torchrun on node 1 was killed by signal 9 (Killed)"),
        ],
    )
    def test_a_killed_process_of_a_real_torchrun(
        self,
        ssh_hosts: SshHosts,
        worker: Worker,
        stand_in: Round,
        environment: Environment,
        tmp_path: Path,
        program: str,
        without: str,
        reason: str,
    ) -> None:
        """Ranks outlive a torchrun that is killed, but not the agent's care."""
        (tmp_path / "rank.py").write_text(RANK, encoding="utf-8")
        *torchrun, _, _, run_dir = launch_of(worker, stand_in.launch.case, stand_in.run_dir).argv  # … -m tasks.worker
        launch = replace(stand_in.launch, argv=(*torchrun, str(tmp_path / "rank.py"), run_dir))
        result_within = replace(stand_in, launch=launch).begin()
        ssh_hosts.find("n2", program.format(tmp_path), without=without).kill()
        result = result_within(PEER_PATIENCE_S + SLACK_S)
        record = collect(stand_in.run_dir, launch.case, 0, result, environment)
        assert record.outcome == "crashed"
        assert reason in (record.reason or "")

    @pytest.mark.slow
    def test_a_host_that_nobody_can_reach_ends_its_part_by_itself(self, ssh_hosts: SshHosts, stand_in: Round) -> None:
        result_within = stand_in.begin()
        ssh_hosts.link("n2", "down")
        result = result_within(SILENCE_S + SLACK_S)
        assert result.ended_by == "lost"
        assert "n2" in (result.why or "").partition(";")[0]
        wait_until(lambda: stand_in.processes() == [], timeout_s=SILENCE_S + SLACK_S, what="n2 ends its part")


def test_addresses_of_hosts_one_of_which_is_this_machine() -> None:
    nowhere: Mapping[str, str | None] = {"address": None, "interface": None}
    ready = {"here": nowhere, "there": {"address": "127.0.0.1", "interface": "lo"}}
    loopback = ("127.0.0.1", "lo")
    assert addresses(ready) == {"here": loopback, "there": loopback}, "here: that towards the other"
    by_ipv6 = {"address": "fd00::2", "interface": None}
    with pytest.raises(SchedulerError, match=r"far .*fd00::2"):
        addresses({"there": ready["there"], "far": by_ipv6})
    with pytest.raises(SchedulerError, match="here, there"):
        addresses({"here": nowhere, "there": nowhere})


@pytest.mark.worker
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


def reduced_gradients_alone(record: RunRecord) -> None:
    """The agent's gradient, once for each of its optimiser steps, and nothing besides."""
    for rank in record.ranks:
        assert set(rank.samples["all_reduce_calls"]) == {None, float(record.case.optimiser_steps)}
        # Two networks of 4-32-32 with one output each, and one standard deviation: all in float32.
        size_bytes = 4 * (2 * (4 * 32 + 32 + 32 * 32 + 32 + 32 + 1) + 1)
        assert set(rank.samples["all_reduce_bytes"]) == {None, size_bytes * record.case.optimiser_steps}
        assert rank.samples["environment_step_time_s"] == (None,) * 4
