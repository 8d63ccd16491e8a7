"""``nox -s watch``: a training that is served to browsers of this machine alone, and leaves nothing behind."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from suite.campaign.runs.watching import HOST, PORT, free_port, watch
from suite.errors import Interrupted, UsageError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from tasks.film import filming as in_the_worker
from tests.fixtures.runs.real_runs import MARK, marked_processes
from tests.fixtures.runs.simulated_campaign import NARROW, campaign_of
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fixtures.runs.worker_probes import run_in_worker

PROBE = """
from types import SimpleNamespace as Some
from tasks.film.filming import serve_if_asked
for rank in (0, 1):
    cfg = Some(sim=Some(visualizer_cfgs=None))
    serve_if_asked(cfg, rank=rank)
    found = cfg.sim.visualizer_cfgs
    print(found and [{name: getattr(one, name) for name in ("port", "bind_address", "display_address", "share")}
        for one in found])
"""


SERVED: dict[str, object] = {"port": 8123, "bind_address": HOST, "display_address": HOST, "share": False}


def test_a_port_that_is_taken_is_left_alone() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind((HOST, PORT))
            other.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        assert free_port() not in {0, PORT}


def test_what_cannot_be_watched_is_said_before_anything_is_installed() -> None:
    case = replace(NARROW[0], workload="environment_step")
    with pytest.raises(UsageError, match=rf"{case.case_id}: it is a single-part test(.|\n)*nox -s plan"):
        watch(campaign_of(SimulatedHost(), [case]))


@pytest.mark.slow
@pytest.mark.worker
@pytest.mark.usefixtures("ctrl_c")
def test_a_real_training_is_served_here_alone_until_ctrl_c(worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    folder = tmp_path / "temporary"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "suite", "watch", "cartpole*"],
        cwd=ROOT,
        env={**os.environ, MARK: str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "Watch it at" in line)
        (port,) = re.findall(rf"http://{re.escape(HOST)}:(\d+) ", said)
        listening = [one.laddr for one in psutil.net_connections("inet") if one.status == psutil.CONN_LISTEN]
        assert {at.ip for at in listening if at and at.port == int(port)} == {HOST}
        page = http.client.HTTPConnection(HOST, int(port), timeout=30)
        page.request("GET", "/")
        assert page.getresponse().status == 200
        page.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == Interrupted.exit_code == 130
    finally:
        process.kill()
        process.communicate()
    assert marked_processes(tmp_path) == []
    assert list(folder.glob("labscale-watch-*")) == []


@pytest.mark.worker
def test_isaac_lab_is_told_to_serve_this_machine_alone(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(in_the_worker.WATCH_VARIABLE, "8123")
    assert run_in_worker(worker, "-c", PROBE).splitlines()[-2:] == [str([SERVED]), "None"]
