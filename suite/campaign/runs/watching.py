"""``watch``: train one case where a browser on this machine can look at it, until Ctrl-C. Nothing is kept."""

import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from suite.campaign.runs.filming import why_not
from suite.campaign.runs.training import render
from suite.campaign.state import Campaign
from suite.errors import Interrupted, RunsFailed, UsageError
from suite.files.paths import ROOT
from suite.install.pins import sha256
from suite.install.worker import Worker, provision_python, provision_worker, worker_pins
from suite.launch.native.run import run
from suite.matrix.own_worker import own_worker_of
from suite.options.command_line import say
from suite.records.collect import collect
from suite.schema.record import Case, Launch

# tasks/film/filming.py reads the variable and serves at this host.
WATCH_VARIABLE: Final = "LABSCALE_WATCH"
HOST: Final = "127.0.0.1"
PINS: Final = "watch"  # the worker's with a viewer, apart from the worker that measures
PORT: Final = 8080  # another one if it is taken
ITERATIONS: Final = 10_000  # a library's checkpoints of more would fill a disk
LONGEST_S: Final = 7 * 24 * 3600.0  # a page can pause the simulation, which must not count as a hang


def watch(campaign: Campaign) -> Campaign:
    """Train the first case of the plan that can be watched, and say where.

    Raises:
        UsageError: no case of the plan can be watched here.
        Interrupted: Ctrl-C ended it, as it is meant to.
        RunsFailed: the training failed.
        WorkerEnvironmentError: something is missing that cannot be installed.
    """
    case = _case_of(campaign)
    worker = _watcher(partial(say, campaign.console))
    port = free_port()
    say(campaign.console, f"{case.case_id} is starting, which takes a minute. Its results are not kept.")
    is_said = False

    def say_address(iterations: int) -> None:
        nonlocal is_said
        if iterations and not is_said:
            is_said = True
            say(campaign.console, f"Watch it at http://{HOST}:{port} (this machine only). Ctrl-C ends it.")

    try:
        with tempfile.TemporaryDirectory(prefix="labscale-watch-") as folder:
            run_dir = Path(folder) / "run"
            plain = render(campaign, worker, run_dir, case, 0, python_path=os.environ.get("PYTHONPATH"))
            launch = watched_launch(plain, port=port)
            result = run(launch, on_progress=say_address)
            record = collect(run_dir, launch.case, 0, result, campaign.machine, argv=())
    except KeyboardInterrupt:
        raise Interrupted("Ended. Nothing was kept.") from None
    if record.outcome != "completed":
        raise RunsFailed(f"{case.case_id} {record.outcome} while it was watched: {record.reason}")
    say(campaign.console, f"{case.case_id} has trained {ITERATIONS:,} iterations, the most that is watched.")
    return campaign


def watched_launch(launch: Launch, *, port: int) -> Launch:
    """Return the launch of a training that goes on and is served at this port."""
    case = replace(launch.case, iterations=ITERATIONS, timeout_s=LONGEST_S, hang_timeout_s=LONGEST_S)
    return replace(launch, case=case, env={**launch.env, WATCH_VARIABLE: str(port)})


def free_port() -> int:
    """Return ``PORT``, or another one if a program of this machine has it."""
    for wanted in (PORT, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, wanted))
            port: int = probe.getsockname()[1]
            return port
    raise UsageError(f"No port of {HOST} is free. Close a program that serves there, and run the same command again.")


def _watcher(on_message: Callable[[str], None]) -> Worker:
    """Return the worker of the pins with the viewer, with the kernels and assets of the one that measures."""
    worker = provision_worker(
        project_root=ROOT, stack="kitless", worker_python=None, assets="offline", on_message=on_message
    )
    python, _ = provision_python(
        project_root=ROOT, stack="kitless", worker_python=None, pins=PINS, on_message=on_message
    )
    return replace(worker, python=python, pins_sha256=sha256(worker_pins(ROOT, "kitless", PINS)))


def _why_not(case: Case) -> str | None:
    own = own_worker_of(case)
    return why_not(case) or (f"the viewer's environment has not what it needs ({own})" if own else None)


def _case_of(campaign: Campaign) -> Case:
    reasons = {item.case.case_id: item.infeasible or _why_not(item.case) for item in campaign.planned}
    for item in campaign.planned:
        if reasons[item.case.case_id] is None:
            return item.case
    listed = "\n".join(f"  {case_id}: {reason}" for case_id, reason in reasons.items())
    raise UsageError(
        f"None of these cases can be watched here:\n{listed}\nName another; nox -s plan -- --matrix"
        f" {campaign.options.selection.matrix} lists all."
    )
