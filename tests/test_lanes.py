"""Lanes against real processes: programs stand in for torchrun."""

import io
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from suite.campaign import rounds
from suite.campaign.folder import Folder
from suite.campaign.packing.order import shared_out
from suite.campaign.packing.threads import Lanes
from suite.campaign.progress import Reporter
from suite.campaign.state import Campaign
from suite.errors import Interrupted, LabscaleError
from suite.files.paths import ROOT
from suite.launch import LaunchResult
from suite.launch.watch import prepare
from suite.matrix.resources import Resources
from suite.schema.record import Launch, PlannedCase
from tests.asked_options import options_with
from tests.generated_results import GPU_HOST, make_case
from tests.simulated_host import SimulatedHost

ITEMS = [
    PlannedCase(
        case=make_case("cartpole-strong", num_envs_global=size, device="cuda"),
        rounds=1, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=None,
    )
    for size in (64, 128)
]  # fmt: skip


def lanes_of(host: SimulatedHost) -> Lanes:
    campaign = Campaign(
        options=options_with(matrix="smoke"),
        console=Console(file=io.StringIO()),
        machine=GPU_HOST,
        device="cuda",
        resources=Resources(nnodes=1, gpus_per_node=2, cpus_per_node=8),
        planned=tuple(ITEMS),
        slots=shared_out(num_gpus=2, cpus=(0, 0), num_cpus=2),  # a core that every machine has
        runtime=host.runtime(),
    )
    return Lanes(campaign, Reporter(campaign.console, ITEMS, [item.case for item in ITEMS]))


def test_taken_slots_are_not_given_twice(tmp_path: Path) -> None:
    with lanes_of(SimulatedHost(wall_s=0.1)) as lanes:
        lanes.start(Folder(root=tmp_path), ITEMS[0], 0, (0,))
        with pytest.raises(AssertionError, match="taken"):
            lanes.start(Folder(root=tmp_path), ITEMS[1], 0, (0, 1))


def test_leaving_the_lanes_ends_what_runs_whatever_comes_meanwhile(tmp_path: Path) -> None:
    """A second Ctrl-C while processes end must not leave any, least of all the one that is waited for."""
    first, _ = (item.case.case_id for item in ITEMS)

    def slow_to_end(launch: Launch) -> None:
        time.sleep(1.0 if launch.case.case_id == first else 0.5)

    host = SimulatedHost(wall_s=60.0, on_start=slow_to_end)
    lanes = lanes_of(host)
    press = threading.Timer(0.2, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    with lanes:
        for number, item in enumerate(ITEMS):
            lanes.start(Folder(root=tmp_path), item, 0, (number,))
        press.start()
    press.join()
    assert len(host.interrupted) == 2
    assert not list(tmp_path.rglob("record.json"))


def test_what_starts_after_the_end_runs_nothing(tmp_path: Path) -> None:
    """A thread that Ctrl-C kept from beginning in time, which nobody waits for."""
    host = SimulatedHost()
    lanes = lanes_of(host)
    lanes.end()
    lanes.start(Folder(root=tmp_path), ITEMS[0], 0, (0,))
    with pytest.raises(Interrupted):
        lanes.wait()
    assert (host.ran, host.interrupted) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_ended_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(*_: object) -> None:
        time.sleep(0.2)
        raise LabscaleError("processes 1 of this run do not end")

    monkeypatch.setattr("suite.campaign.packing.threads.run_round", stuck)
    with pytest.raises(LabscaleError, match="do not end"), lanes_of(SimulatedHost()) as lanes:  # noqa: PT012
        lanes.start(Folder(root=tmp_path), ITEMS[0], 0, (0,))
        raise KeyboardInterrupt


def test_upstreams_run_is_in_the_lane_and_ends_with_it(tmp_path: Path) -> None:
    stop = threading.Event()
    host = SimulatedHost()
    launched: list[Launch] = []

    def launch(
        launch: Launch, *, on_progress: Callable[[int], None] | None = None, stop: threading.Event | None = None
    ) -> LaunchResult:
        launched.append(launch)
        if stop is not None and launch.run_dir.endswith("upstream"):
            stop.set()
        return host.launch(launch, on_progress=on_progress)

    lanes = lanes_of(host)
    campaign = replace(
        lanes._campaign,
        options=options_with(matrix="smoke", upstream=True),
        runtime=replace(host.runtime(), launch=launch),
    )
    lane = campaign.slots[1]
    with pytest.raises(Interrupted, match="upstream's run"):
        rounds.run_round(
            campaign, Folder(root=tmp_path), lanes._reporter, ITEMS[0].case, 0, rounds.Place(lane=lane, stop=stop)
        )
    ours, theirs = launched
    assert (theirs.env, theirs.cpus) == (ours.env, ours.cpus)
    assert ours.env["CUDA_VISIBLE_DEVICES"] == "1"
    assert ours.cpus == lane.cpus


PROGRAM = """
import sys, threading
from pathlib import Path
from suite.launch.native.run import run
from suite.schema.record import Launch
from tasks.rank.case_file import read_case
folder = Path(sys.argv[1])
case = read_case(folder / "case.json")
program = (sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1])
for number in range(2):
    launch = Launch(case=case, round=number, argv=program, env={}, run_dir=str(folder / f"r{number}"))
    threading.Thread(target=run, args=(launch,)).start()
threading.Event().wait()
"""


def test_a_killed_command_takes_the_runs_of_all_threads_along(tmp_path: Path) -> None:
    prepare(tmp_path, ITEMS[0].case)

    def running() -> list[psutil.Process]:
        return [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if {str(tmp_path), "import time; time.sleep(600)"} <= set(process.info["cmdline"] or ())
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT) as command:
        try:
            wait_until(lambda: len(running()) == 2)
        finally:
            command.kill()
    wait_until(lambda: running() == [])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
