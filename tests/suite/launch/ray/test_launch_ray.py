"""The ray launcher on two hosts that are a Ray cluster; ranks that are a few lines of Python stand for training."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from suite.launch.nodes.agent import SILENCE_S
from suite.launch.ray import run as ray
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Launch
from tests.conftest import CaseMaker
from tests.fixtures.machines.ray_hosts import HOSTS, RayHosts
from tests.fixtures.runs.real_runs import wait_until

# Goes on for as long as the file `go_on` is there.
RANK: Final = """
import faulthandler, json, os, signal, sys, time
from pathlib import Path
faulthandler.register(signal.SIGUSR1)
run_dir = Path(sys.argv[1])
seen = {"head": os.environ["LABSCALE_HEAD"], "niceness": os.nice(0), "threads": os.environ.get("OMP_NUM_THREADS")}
seen |= {"blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]}
(run_dir / f"started-{os.environ['LABSCALE_NODE_RANK']}").write_text(json.dumps(seen))
while (run_dir / "go_on").exists():
    time.sleep(0.1)
sys.exit(int(sys.argv[2]))
"""
CONNECTS_FOR_EVER: Final = """
import time
from suite.launch.ray import driver
driver.connected = lambda _: time.sleep(600)
driver.main(["round"])
"""
SLACK_S: Final = 15.0  # of a busy machine


@pytest.fixture
def launch(make_case: CaseMaker, tmp_path: Path) -> Launch:
    case: Case = make_case(nnodes=2, nproc_per_node=1)
    run_dir = tmp_path / "r0"
    run_dir.mkdir()
    argv = (sys.executable, "-c", RANK, str(run_dir), "0")
    return Launch(case=case, round=0, argv=argv, env={}, run_dir=str(run_dir), grace_s=2.0)


def num_started(run_dir: Path) -> int:
    return sum(path.stat().st_size > 0 for path in run_dir.glob("started-*"))


Begin = Callable[..., Callable[[float], LaunchResult]]  # waits for so many seconds for the end of a round


@pytest.fixture
def begin(launch: Launch) -> Begin:
    """Begin a round that does not end by itself, and wait until both ranks are at work."""

    def begin(*, stop: threading.Event | None = None) -> Callable[[float], LaunchResult]:
        run_dir = Path(launch.run_dir)
        (run_dir / "go_on").touch()
        ended: list[LaunchResult] = []
        thread = threading.Thread(target=lambda: ended.append(ray.run(launch, say=print, stop=stop)))
        thread.start()
        wait_until(lambda: ended or num_started(run_dir) == len(HOSTS), timeout_s=60, what="both ranks start")
        assert not ended, ended

        def result(within_s: float) -> LaunchResult:
            thread.join(within_s)
            assert ended, f"not within {within_s:g} s"
            return ended[0]

        return result

    return begin


def nothing_left(ray_hosts: RayHosts) -> None:
    wait_until(lambda: not any(map(ray_hosts.programs, HOSTS)), timeout_s=SLACK_S, what="all processes end")


def test_nodes_run_as_if_ray_were_not_there_until_the_user_ends_them(
    ray_hosts: RayHosts, launch: Launch, begin: Begin
) -> None:
    stop = threading.Event()
    result_within = begin(stop=stop)
    seen = [json.loads((Path(launch.run_dir) / f"started-{rank}").read_text()) for rank in (0, 1)]
    ours: dict[str, object] = {"niceness": os.nice(0), "threads": os.environ.get("OMP_NUM_THREADS"), "blocked": []}
    assert seen == [{"head": "10.77.0.11", **ours}] * 2
    stop.set()
    result = result_within(launch.grace_s + SLACK_S)
    assert (result.ended_by, result.why) == ("interrupted", None)
    assert result.nodes == ("10.77.0.11", "10.77.0.12")
    assert [ray_hosts.programs(host) for host in HOSTS] == [[], []]


def test_a_round_that_the_user_ends_before_it_has_begun(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver is connecting, which takes longer than anyone waits."""
    monkeypatch.setattr(ray, "PROGRAM", (sys.executable, "-c", CONNECTS_FOR_EVER))
    stop = threading.Event()
    stop.set()
    began_s = time.monotonic()
    result = ray.run(launch, say=print, stop=stop)
    assert (result.ended_by, result.why) == ("interrupted", None)
    assert time.monotonic() - began_s < SLACK_S


def test_a_killed_driver(ray_hosts: RayHosts, launch: Launch, begin: Begin) -> None:
    """Ray ends its processes on both nodes, and with each of them an agent ends its part."""
    result_within = begin()
    ray_hosts.find("n1", "suite.launch.ray.driver").kill()
    result = result_within(launch.grace_s + SLACK_S)
    assert result.ended_by == "lost"
    assert "driver was killed by signal 9" in (result.why or "")
    nothing_left(ray_hosts)


def test_a_killed_node(ray_hosts: RayHosts, launch: Launch, begin: Begin) -> None:
    result_within = begin()
    ray_hosts.kill("n2")
    result = result_within(SILENCE_S + launch.grace_s + SLACK_S)
    assert result.ended_by == "lost"
    assert "10.77.0.12" in (result.why or "")
    assert ray_hosts.programs("n1") == []
