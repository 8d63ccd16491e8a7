"""What each host of ssh is and has, and whether the hosts are alike."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pydantic import TypeAdapter

from suite.errors import SchedulerError, UsageError
from suite.external.program import run_program
from suite.external.ssh import ssh_argv
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.nodes import facts
from suite.launch.nodes.likeness import as_one, parsed
from suite.launch.ssh.run import SshPlace
from suite.matrix.resources import Resources
from suite.schema.record import Environment

TIMEOUT_S: Final = 300.0


def resources(place: SshPlace) -> Resources:
    """The number of hosts, and what the smallest of them has.

    Raises:
        UsageError: no host is named, or one is named twice.
        SchedulerError: one does not answer.
    """
    if not place.hosts or len(set(place.hosts)) != len(place.hosts):
        raise UsageError(
            f"--launcher ssh needs --nodes host1,host2: each host once, got {', '.join(place.hosts) or 'none'}."
        )
    said = _ask(place, (sys.executable, "-m", "suite.external.machine"), os.environ)
    found = [parsed(host, text, TypeAdapter(Environment).validate_json) for host, text in said.items()]
    return Resources(
        nnodes=len(place.hosts),
        gpus_per_node=min(len(environment.gpus) for environment in found),
        cpus_per_node=min(environment.num_cpus or 1 for environment in found),
    )


def look_at_hosts(place: SshPlace, arguments: Sequence[str], *, differing_is_fine: bool) -> facts.NodeFacts:
    """Run ``suite.launch.nodes.facts`` with ``arguments`` on all hosts at once; return the environment of the head.

    The report is the worst of all hosts'.

    Raises:
        SchedulerError: a host does not answer with its facts.
        EnvironmentNotFit: the hosts differ, and ``differing_is_fine`` is False.
    """
    said = _ask(place, (sys.executable, *arguments), os.environ)
    return as_one(said, say=place.say, differing_is_fine=differing_is_fine)


def _ask(place: SshPlace, command: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """What the command prints on each host. Raises SchedulerError for one that cannot run it."""

    def ask(host: str) -> str:
        argv = ssh_argv(command, environ=environ, host=host, working_dir=ROOT, config=place.config)
        run = run_program(argv, environ={**environ, "LC_ALL": "C"}, timeout_s=TIMEOUT_S)
        if run.end == "ended" and run.exit_code == 0:
            return run.stdout
        raise SchedulerError(
            f"{host} does not run {' '.join(command[1:3])} (ssh {run.end}, exit code {run.exit_code}): "
            f"{last_words(run.stderr)}\n`ssh {shlex.quote(host)} true` must work without a password, and the checkout "
            "and its Python must be in the same folders there."
        )

    with ThreadPoolExecutor(max_workers=min(32, len(place.hosts))) as pool:
        return dict(zip(place.hosts, pool.map(ask, place.hosts), strict=True))
