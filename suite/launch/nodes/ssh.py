"""The launcher ``ssh``: rounds on hosts that the user names and ssh reaches.

ssh would leave processes; ``suite.launch.nodes.agent``, which it starts on each host, leaves none.
"""

import functools
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from suite.errors import SchedulerError, UsageError
from suite.external.program import LineProgram
from suite.external.ssh import run_on_hosts, ssh_argv
from suite.files.paths import ROOT
from suite.launch.contract import TO_ITS_END, Asked, LauncherEntry, RunControl, Runtime, Say
from suite.launch.nodes.facts import node_answer, printed, provision_on_nodes
from suite.launch.nodes.supervisor import Part, supervise
from suite.matrix.resources import Resources
from suite.options.command_line import configuration_file
from suite.options.declaration import option
from suite.options.types import hosts
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Environment, Launch

TIMEOUT_S: Final = 300.0  # for what a host is asked


@dataclass(frozen=True, kw_only=True)
class SshSettings:
    nodes: tuple[str, ...] = option(
        "run on these hosts over ssh; the first is the head",
        default=(),
        type=hosts,
        metavar="HOST,HOST",
        needs="--launcher ssh (Slurm takes --sbatch-option nodelist=HOST,HOST)",
    )
    ssh_config: Path | None = option(
        "with --nodes: configuration file of ssh, as for `ssh -F`",
        type=configuration_file,
        metavar="FILE",
        needs="--nodes HOST,HOST, which ssh reaches",
    )


def run(launch: Launch, control: RunControl = TO_ITS_END, *, settings: SshSettings, say: Say) -> LaunchResult:
    """Run ``launch`` on the hosts; see ``suite.launch.contract``."""
    return supervise(launch, lambda rank: connect(settings.nodes[rank], settings.ssh_config), control, say=say)


def connect(host: str, config: Path | None) -> Part:
    """Start the agent of a host. Raises SchedulerError if there is no ssh here."""
    argv = ssh_argv((sys.executable, "-m", "suite.launch.nodes.agent"), host=host, working_dir=ROOT, config=config)
    try:
        return Part(host, LineProgram(argv, environ={**os.environ, "LC_ALL": "C"}), advice=_advice(host))
    except OSError as error:
        raise SchedulerError(f"ssh cannot be started: {error.strerror}. Install it (openssh-client).") from error


def resources(settings: SshSettings) -> Resources:
    """The number of hosts, and what the smallest of them has.

    Raises:
        UsageError: no host is named, or one is named twice.
        SchedulerError: one does not answer.
    """
    if not settings.nodes or len(set(settings.nodes)) != len(settings.nodes):
        raise UsageError(
            f"--launcher ssh needs --nodes host1,host2: each host once, got {', '.join(settings.nodes) or 'none'}."
        )
    answers = _ask(settings, ("-m", "suite.external.machine"))
    machines = [node_answer(host, text, TypeAdapter(Environment).validate_json) for host, text in answers.items()]
    return Resources(
        nnodes=len(settings.nodes),
        gpus_per_node=min(len(machine.gpus) for machine in machines),
        cpus_per_node=min(machine.num_cpus or 1 for machine in machines),
    )


def _ask(settings: SshSettings, arguments: Sequence[str]) -> dict[str, str]:
    """What labscale's own Python prints on each host, all at once. Raises SchedulerError for one that cannot run it."""
    runs = run_on_hosts(
        (sys.executable, *arguments),
        hosts=settings.nodes,
        working_dir=ROOT,
        environ=os.environ,
        config=settings.ssh_config,
        timeout_s=TIMEOUT_S,
    )
    return printed(runs, arguments, _advice)


def _advice(host: str) -> str:
    return (
        f"`ssh {shlex.quote(host)} true` must work without a password, and the checkout and its Python must be in the "
        "same folders there."
    )


def _provision(settings: SshSettings, asked: Asked) -> Runtime:
    launch = functools.partial(run, settings=settings, say=asked.say)
    return provision_on_nodes(asked, functools.partial(_ask, settings), launch)


SSH: Final = LauncherEntry(
    name="ssh",
    resources=lambda settings, _: resources(settings),
    provision=_provision,
    settings=SshSettings,
    chosen_by="nodes",
    elsewhere=True,
)
