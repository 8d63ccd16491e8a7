"""Clusters that cannot be used, and what is said: Ray itself refuses, and the answer names the next step."""

import importlib.util
import subprocess
import sys
from types import SimpleNamespace
from typing import Final
from unittest import mock

import pytest

from suite.errors import SchedulerError, WorkerEnvironmentError
from suite.launch.ray import cluster, run
from tests.fixtures.machines.ray_hosts import DRIVER, RayHosts
from tests.fixtures.machines.slurm_cluster import LOGIN
from tests.reports.accept.test_session import noxfile

OLDER: Final = """
import ray
ray.__version__ = "2.59.0"
from suite.launch.ray import driver
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


def test_a_cluster_of_another_version(ray_hosts: RayHosts) -> None:
    error = run.error_of(ray_hosts.answer(sys.executable, "-c", OLDER))
    assert isinstance(error, SchedulerError)
    assert "2.60.0" in str(error)
    assert "2.59.0" in str(error)


def test_nodes_that_are_not_free(ray_hosts: RayHosts) -> None:
    """Each node has one CPU."""
    error = run.error_of(ray_hosts.answer(sys.executable, "-c", TOO_MUCH))
    assert isinstance(error, SchedulerError)
    assert "2 nodes with 2 CPU" in str(error)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "ray start --head"),
        ("local", "RAY_ADDRESS=local .*HOST:PORT"),
        ("ray://n1:10001", "RAY_ADDRESS=ray://n1:10001"),
    ],
)
def test_no_cluster(ray_hosts: RayHosts, address: str, said: str) -> None:
    error = run.error_of(ray_hosts.answer(*DRIVER, "nodes", on=LOGIN, ray_address=address))
    with pytest.raises(SchedulerError, match=said):
        raise error


def test_a_priority_that_may_not_be_undone() -> None:
    """Only root may undo it. The parent stands for Ray, and its child has been made nice."""
    limited = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    argv = (*limited, "sh", "-c", '"$@"; exit', "sh", "nice", "-n", "15", sys.executable, "-c", NICE)
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "niceness 15, allowed is 0" in done.stdout
    assert "RAY_worker_niceness=0" in done.stdout


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WorkerEnvironmentError, match="nox -s bench -- --launcher ray"):
        cluster.resources()


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
