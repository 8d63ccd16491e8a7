"""The launcher ``ssh``: rounds on hosts that the user names and ssh reaches.

ssh would leave processes; ``suite.launch.nodes.agent``, which it starts on each host, leaves none.
"""

import functools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, Self

from pydantic import TypeAdapter

from suite.errors import SchedulerError, UsageError
from suite.external.program import lines_into, run_program, send_line
from suite.external.ssh import ssh_argv
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.contract import TO_ITS_END, Asked, LauncherEntry, RunControl, Runtime, Say
from suite.launch.native import on_this_machine
from suite.launch.nodes.facts import arguments_for, as_one, parsed
from suite.launch.nodes.supervisor import Part, supervise
from suite.matrix.resources import Resources
from suite.options.command_line import configuration_file
from suite.options.declaration import option
from suite.options.types import hosts
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Environment, Launch

TIMEOUT_S: Final = 300.0  # for what a host is asked
_CLOSE_PATIENCE_S: Final = 5.0
_LAST_LINES: Final = 5


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

    def connect(rank: int) -> RemotePart:
        return RemotePart.start(settings.nodes[rank], settings.ssh_config)

    return supervise(launch, connect, control, say=say)


class RemotePart(Part):
    """The part of a host, whose agent ssh starts."""

    def __init__(self, host: str, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        super().__init__(host)
        self._process = process
        self._errors = errors
        self._reader = lines_into(self._lines, process)

    @classmethod
    def start(cls, host: str, config: Path | None) -> Self:
        """Connect to the host. Raises SchedulerError if there is no ssh here."""
        argv = ssh_argv((sys.executable, "-m", "suite.launch.nodes.agent"), host=host, working_dir=ROOT, config=config)
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by finish
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C in the terminal reaches labscale alone
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            errors.close()
            raise SchedulerError(f"ssh cannot be started: {error.strerror}. Install it (openssh-client).") from error
        return cls(host, process, errors)

    @property
    def advice(self) -> str:
        return _advice(self.host)

    def _send(self, line: str) -> None:
        send_line(self._process, line)

    def _last_words(self) -> str:
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip()
        return last_words(errors or self._last_said, _LAST_LINES)

    def _close(self) -> None:
        if not self.is_going_on and self.lost is None:  # its agent ends by itself, and ssh with it
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSE_PATIENCE_S)
        self._process.kill()
        self._process.wait()
        self._reader.join(_CLOSE_PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(BrokenPipeError):  # of what was still to be written
                if stream is not None:
                    stream.close()


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
    machines = [parsed(host, text, TypeAdapter(Environment).validate_json) for host, text in answers.items()]
    return Resources(
        nnodes=len(settings.nodes),
        gpus_per_node=min(len(machine.gpus) for machine in machines),
        cpus_per_node=min(machine.num_cpus or 1 for machine in machines),
    )


def _ask(settings: SshSettings, arguments: Sequence[str]) -> dict[str, str]:
    """What labscale's own Python prints on each host, all at once. Raises SchedulerError for one that cannot run it."""

    def ask(host: str) -> str:
        argv = ssh_argv(
            (sys.executable, *arguments), environ=os.environ, host=host, working_dir=ROOT, config=settings.ssh_config
        )
        run = run_program(argv, environ={**os.environ, "LC_ALL": "C"}, timeout_s=TIMEOUT_S)
        if run.end == "ended" and run.exit_code == 0:
            return run.stdout
        raise SchedulerError(
            f"{host} does not run {' '.join(arguments[:2])} (ssh {run.end}, exit code {run.exit_code}): "
            f"{last_words(run.stderr)}\n{_advice(host)}"
        )

    with ThreadPoolExecutor(max_workers=min(32, len(settings.nodes))) as pool:
        return dict(zip(settings.nodes, pool.map(ask, settings.nodes), strict=True))


def _advice(host: str) -> str:
    return (
        f"`ssh {shlex.quote(host)} true` must work without a password, and the checkout and its Python must be in the "
        "same folders there."
    )


def _provision(settings: SshSettings, asked: Asked) -> Runtime:
    """Use the worker in the same folder on every host of ``--nodes``; refuse hosts that differ, by name."""
    inner = on_this_machine(asked)
    answers = _ask(settings, arguments_for(asked.request))
    facts = as_one(answers, say=asked.say, differing_is_fine=asked.options.place.ignore_env_check)
    return replace(
        inner,
        launch=functools.partial(run, settings=settings, say=asked.say),
        machine=facts.environment,
        check=lambda: facts.report,
    )


SSH: Final = LauncherEntry(
    name="ssh",
    resources=lambda settings, _: resources(settings),
    provision=_provision,
    settings=SshSettings,
    chosen_by="nodes",
)
