"""What runs the rounds of a campaign in one place, and the simplest place: this machine itself."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.env_check.report import Report, env_check
from suite.env_check.request import Request
from suite.install.worker import Worker, provision_worker
from suite.launch import Launcher
from suite.launch.native.run import run as run_native
from suite.options.options import ROOT, Options
from suite.schema.record import Device, Environment, Launch, Stack

Say = Callable[[str], None]
Command = tuple[tuple[str, ...], dict[str, str]]  # and what to add to its environment


@dataclass(frozen=True, kw_only=True)
class Runtime:
    worker: Worker
    launch: Launcher
    check: Callable[[], Report]  # env_check, in the place where the rounds run
    python_path: str | None  # of the caller, where it means the same
    image_digest: str | None = None
    command: Callable[[Sequence[str]], Command] = lambda arguments: ((sys.executable, *arguments), {})
    wrap: Callable[[Launch], Launch] | None = None  # into a container, for a program that starts it elsewhere
    machine: Environment | None = None  # where rounds run, unless it is this machine
    is_submitted: Callable[[Path], bool] = lambda _: False  # whether a run directory has a job that goes on without us
    write_script: Callable[[Launch], Path] | None = None  # for a scheduler


def on_this_machine(options: Options, *, stack: Stack, device: Device, on_message: Say) -> Runtime:
    """The worker environment of this machine, or the Python that the user brought, started by torchrun here."""
    worker = provision_worker(
        project_root=ROOT,
        stack=stack,
        worker_python=options.worker_python,
        worker_packages=options.worker_packages,
        assets=options.assets,
        on_message=on_message,
    )
    request = Request(
        stack=stack, device=device, worker_python=options.worker_python, worker_packages=options.worker_packages
    )
    return Runtime(
        worker=worker,
        launch=run_native,
        check=functools.partial(env_check, request),
        python_path=os.environ.get("PYTHONPATH"),
    )
