"""What a campaign knows of a launcher: its entry in the registry, what it is asked for, and what it provides."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.install.worker import Worker
from suite.launch import Launcher, TurnsLauncher
from suite.matrix.own_worker import OwnWorker, own_worker_of
from suite.matrix.resources import Resources
from suite.options.options import Options
from suite.schema.record import Case, Device, Environment, Launch, Stack

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Say = Callable[[str], None]
Command = tuple[tuple[str, ...], dict[str, str]]  # argv, and what to add to its environment


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The workers, the launcher and env_check of the place where the rounds of a campaign run."""

    worker: Worker  # of the stack
    own_workers: Mapping[OwnWorker, Worker] = field(default_factory=dict)  # of cases that it does not serve
    launch: Launcher
    launch_in_turns: TurnsLauncher | None = None  # for rounds that start together; None: each runs alone
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
        )


def _no_arguments(_parser: argparse.ArgumentParser) -> None:
    """A launcher without options of its own."""


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The options of a launcher that has none of its own."""


@dataclass(frozen=True, kw_only=True)
class LauncherEntry[S: "DataclassInstance"]:
    """One way to run rounds: what it can do, its own options as ``S``, how much it can run, what it provides."""

    name: str
    resources: Callable[[S, Environment], Resources]  # of the place; the machine is this one
    provision: Callable[[S, Asked], Runtime]
    settings: type[S]  # a field for each of its own options, with its default
    add_arguments: Callable[[argparse.ArgumentParser], None] = _no_arguments
    chosen_by: str | None = None  # an option of its own that chooses it without --launcher, for `plan` too
    needs: Mapping[str, str] = field(default_factory=dict)  # what one of its options needs, unless --launcher NAME
    image: str | None = None  # what --image names; None: it runs no images
    always_in_image: bool = False
    picks_worker: bool = False  # the worker that suits the most cases is installed here
    can_profile: bool = False
    can_film: bool = False
    gives_cores: bool = (
        False  # a round can be given some of the cores, so that each of its ranks has as many in all rounds
    )
    has_own_workers: bool = False  # a case may have an environment of its own, installed here
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
    takes: tuple[str, ...] = ()  # options of ``Manifests`` that have an effect
