"""The contract of a launcher: what it promises of a run, what a campaign asks it for, and its entry in the registry.

A launcher runs one launch to its end and keeps these promises, which ``tests/suite/launch/contract.py`` tests for all:

- The run directory is prepared first. A finished round in it is refused, and never overwritten.
- ``RunControl`` hears of each iteration of rank 0. The result has the exit code of torchrun, or its signal.
- A run that exceeds its time, or writes nothing for too long, is ended; the ranks write their stacks before that.
- When one node of several ends badly, the others are ended. One that is lost is named.
- When the launcher returns or raises, by Ctrl-C too, no process of the run is left. When labscale itself is killed,
  they end without it. Two launchers differ: a container is removed by the next command, and a job of Slurm goes on,
  which the same command follows.

It raises ``StoreError`` when the run directory cannot be written or has a finished round, and another error of
``suite.errors`` when the run cannot be started or cannot be ended.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.install.worker import Worker
from suite.matrix.own_worker import OwnWorker, own_worker_of
from suite.matrix.resources import Resources
from suite.options.options import Options
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Device, Environment, Launch, Stack

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Say = Callable[[str], None]
Command = tuple[tuple[str, ...], dict[str, str]]  # argv, and what to add to its environment


@dataclass(frozen=True, kw_only=True)
class RunControl:
    """What the caller of a launcher hears of a run, and how it ends one early."""

    on_progress: Callable[[int], None] | None = None  # gets the number of iterations that rank 0 has finished
    stop: Event | None = None
    waits: Callable[[], bool] | None = None  # whether the run waits for its turn: its silence is then no hang

    @property
    def is_stopped(self) -> bool:
        return self.stop is not None and self.stop.is_set()


TO_ITS_END: Final = RunControl()

Launcher = Callable[[Launch, RunControl], LaunchResult]


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The workers, the launcher and env_check of the place where the rounds of a campaign run."""

    worker: Worker  # of the stack
    own_workers: Mapping[OwnWorker, Worker] = field(default_factory=dict)  # of cases that it does not serve
    launch: Launcher
    check: Callable[[], Report]  # runs env_check in that place
    python_path: str | None  # the caller's, where it means the same
    image_digest: str | None = None  # of the image that every round runs in
    command: Callable[[Sequence[str]], Command] = lambda arguments: ((sys.executable, *arguments), {})
    wrap: Callable[[Launch], Launch] | None = None  # into a container, for a program that starts it elsewhere
    machine: Environment | None = None  # where rounds run, unless it is this machine
    is_submitted: Callable[[Path], bool] = lambda _: False  # whether a run directory has a job that goes on without us
    write_script: Callable[[Launch], Path] | None = None  # for a scheduler

    def worker_of(self, case: Case) -> Worker:
        """The worker that runs a case; a Python that the user brought runs every case of the plan."""
        own = own_worker_of(case)
        return self.worker if own is None else self.own_workers.get(own, self.worker)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a campaign asks a launcher to provide."""

    options: Options
    stack: Stack
    device: Device
    say: Say
    out: Path  # the campaign's folder
    num_gpus: int = 1  # the most that a node of a case has
    own_workers: tuple[OwnWorker, ...] = ()  # that cases need besides that of the stack

    @property
    def request(self) -> Request:
        """The question to env_check about the worker that the user chose."""
        return Request(
            stack=self.stack,
            device=self.device,
            worker_python=self.options.setup.worker_python,
            worker_packages=self.options.setup.worker_packages,
            everything=False,
        )


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The options of a launcher that has none of its own."""


@dataclass(frozen=True, kw_only=True)
class LauncherEntry[S: "DataclassInstance"]:
    """One way to run rounds: what it can do, its own options as ``S``, how much it can run, what it provides."""

    name: str
    resources: Callable[[S, Environment], Resources]  # of the place; the machine is this one
    provision: Callable[[S, Asked], Runtime]
    settings: type[S]  # declares its own options
    chosen_by: str | None = None  # an option of its own that chooses it without --launcher, for `plan` too
    image: str | None = None  # what --image names; None: it runs no images
    always_in_image: bool = False
    installs_workers: bool = False  # here: that which suits the most cases, and environments that cases need alone
    runs_here: bool = False  # as processes of this machine, which can be profiled, filmed and given some of its cores
    elsewhere: bool = False  # other machines train, whose memory is not known
    takes_turns: bool = False  # rounds may start together and be measured in turns
    writes_scripts: bool = False  # for --render-only


@dataclass(frozen=True, kw_only=True)
class ManifestEntry:
    """One kind of cluster with a control plane of its own, for which ``plan --render`` writes files."""

    name: str
    submit: str  # the command that takes a file
    suffix: str  # of the file that runs all cases of one node
    results: Callable[[str], str]  # where a pod writes the results of a matrix
    campaign: Callable[[Sequence[str], Options, str, int], dict[str, Any]]  # arguments of bench, …, name, GPUs
    round_of_nodes: Callable[[Launch, Options, int], dict[str, Any]] | None = None  # …, rounds of the case
