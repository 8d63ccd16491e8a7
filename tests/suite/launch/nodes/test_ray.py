"""The launcher ``ray`` on two hosts that are a Ray cluster; a few lines of Python stand for training."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest import mock

import pytest

from suite.errors import SchedulerError, WorkerEnvironmentError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.contract import RunControl
from suite.launch.nodes import ray
from suite.launch.nodes.agent import SILENCE_S
from suite.records.store import read_case, read_record
from tests.fixtures.machines.namespaces import LOGIN
from tests.fixtures.machines.ray_hosts import DRIVER, HEAD, HOSTS, RayHosts
from tests.fixtures.runs.real_runs import wait_until
from tests.reports.accept.test_session import noxfile
from tests.suite.launch.contract import CASE, MATRIX, SLACK_S, NodesContract, Place, Round

# A driver that gives the other nodes no time to end by themselves.
IMPATIENT: Final = """
import sys
from suite.launch.nodes import ray_driver, supervisor
supervisor.PEER_PATIENCE_S = 0.2
sys.exit(ray_driver.main(sys.argv[1:]))
"""
CONNECTS_FOR_EVER: Final = """
import time
from suite.launch.nodes import ray_driver
ray_driver.connected = lambda _: time.sleep(600)
ray_driver.main(["round"])
"""
OLDER: Final = """
import ray
ray.__version__ = "2.59.0"
from suite.launch.nodes import ray_driver as driver
driver.main(["nodes"])
"""
TOO_MUCH: Final = """
import json
from pathlib import Path
from suite.errors import SchedulerError
from suite.external.ray_cluster import Reservation, connected
with connected(Path()):
    try:
        Reservation(2, gpus=0, cpus=2, timeout_s=1.0)
    except SchedulerError as error:
        print(json.dumps({"kind": type(error).__name__, "text": str(error)}))
"""
NICE: Final = """
from suite.external.ray_cluster import _as_ray_was_started
print(_as_ray_was_started())
"""


# What Ray makes of the process that starts a node's program is undone before that.
PLAIN: Final = """
import json, os, signal, sys
from pathlib import Path
seen = {"niceness": os.nice(0), "threads": os.environ.get("OMP_NUM_THREADS")}
seen |= {"blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]}
print(json.dumps(seen))
"""


@pytest.fixture
def place(ray_hosts: RayHosts, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(ray, "PROGRAM", tuple(ray_hosts.argv(sys.executable, "-c", IMPATIENT, on=HEAD)))
    return Place(
        run=partial(ray.run, say=print),
        nnodes=len(HOSTS),
        patience_s=2.5,
        helpers=lambda: [process for host in HOSTS for process in ray_hosts.programs(host)],
        lose_node=lambda: ray_hosts.find("n2", "suite.launch.nodes.agent").kill(),
    )


class TestRay(NodesContract):
    def test_nodes_run_as_if_ray_were_not_there(self, stand_in: Round) -> None:
        launch = replace(stand_in.launch, argv=(sys.executable, "-c", PLAIN))
        result = ray.run(launch, say=print)
        assert result.nodes == ("10.77.0.11", "10.77.0.12")
        ours: dict[str, object] = {"niceness": os.nice(0), "threads": os.environ.get("OMP_NUM_THREADS"), "blocked": []}
        assert [json.loads(line) for line in stand_in.log.splitlines()] == [ours] * 2

    def test_a_round_that_the_user_ends_before_it_has_begun(
        self, stand_in: Round, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The driver is connecting, which takes longer than anyone waits."""
        monkeypatch.setattr(ray, "PROGRAM", (sys.executable, "-c", CONNECTS_FOR_EVER))
        stop = threading.Event()
        stop.set()
        began_s = time.monotonic()
        result = ray.run(stand_in.launch, RunControl(stop=stop), say=print)
        assert (result.ended_by, result.why) == ("interrupted", None)
        assert time.monotonic() - began_s < SLACK_S

    def test_a_killed_driver(self, ray_hosts: RayHosts, stand_in: Round) -> None:
        """Ray ends its processes on both nodes, and with each of them an agent ends its part."""
        result_within = stand_in.begin()
        ray_hosts.find("n1", IMPATIENT).kill()
        result = result_within(SLACK_S)
        assert result.ended_by == "lost"
        assert "driver was killed by signal 9" in (result.why or "")
        wait_until(lambda: stand_in.processes() == [], timeout_s=SLACK_S, what="all processes end")

    @pytest.mark.slow
    def test_a_killed_host(self, ray_hosts: RayHosts, stand_in: Round) -> None:
        result_within = stand_in.begin()
        ray_hosts.kill_node("n2")
        result = result_within(SILENCE_S + SLACK_S)
        assert result.ended_by == "lost"
        assert "10.77.0.12" in (result.why or "")


@pytest.mark.parametrize(
    ("command", "host", "ray_address", "message"),
    [
        ((sys.executable, "-c", OLDER), HEAD, None, r"2\.60\.0.*2\.59\.0"),
        ((sys.executable, "-c", TOO_MUCH), HEAD, None, "2 nodes with 2 CPU"),  # each has one
        ((*DRIVER, "nodes"), LOGIN, "", "ray start --head"),
        ((*DRIVER, "nodes"), LOGIN, "local", "RAY_ADDRESS=local .*HOST:PORT"),
        ((*DRIVER, "nodes"), LOGIN, "ray://n1:10001", "RAY_ADDRESS=ray://n1:10001"),
    ],
)
def test_a_cluster_that_cannot_be_used(
    ray_hosts: RayHosts, command: tuple[str, ...], host: str, ray_address: str | None, message: str
) -> None:
    error = ray.error_of(ray_hosts.answer(*command, on=host, ray_address=ray_address))
    with pytest.raises(SchedulerError, match=message):
        raise error


def test_a_priority_that_may_not_be_undone() -> None:
    """Nobody but root may undo it. The parent stands for Ray, and its child has been made nice."""
    limited = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    argv = (*limited, "sh", "-c", '"$@"; exit', "sh", "nice", "-n", "15", sys.executable, "-c", NICE)
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    own = os.nice(0)  # of the tests
    assert f"niceness {min(own + 15, 19)}, allowed is {own}" in done.stdout
    assert "RAY_worker_niceness=0" in done.stdout


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WorkerEnvironmentError, match="nox -s bench -- --launcher ray"):
        ray.resources()


@pytest.mark.parametrize(
    ("posargs", "groups"),
    [
        ((), ["report"]),
        (("--launcher", "slurm"), ["report"]),
        (("--launcher", "ray"), ["report", "ray"]),
        (("--launcher=ray", "--device", "cpu"), ["report", "ray"]),
    ],
)
def test_nox_installs_ray_only_where_it_is_asked_for(posargs: tuple[str, ...], groups: list[str]) -> None:
    ours = noxfile()
    installed: list[str] = []
    with mock.patch.object(ours, "install", lambda _, group: installed.append(group)):
        ours.bench.func(SimpleNamespace(posargs=posargs, run=lambda *_words, **_named: None))
    assert installed == groups


@pytest.mark.worker
def test_two_nodes_reduce_gradients_to_a_complete_record(ray_hosts: RayHosts, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    out = tmp_path / "out"
    done = subprocess.run(
        ray_hosts.argv(
            *(sys.executable, "-m", "suite", "bench", "--matrix", str(tmp_path / "matrix.toml"), "--out", str(out)),
            *("--device", "cpu", "--no-report", "--launcher", "ray"),
            on=HEAD,
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
