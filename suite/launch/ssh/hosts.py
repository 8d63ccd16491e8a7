"""What each host of ssh is and has, and whether the hosts are alike."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.env_check.nodes.differences import differences
from suite.env_check.report import Report
from suite.errors import EnvironmentNotFit, SchedulerError, UsageError
from suite.external.program import run_program
from suite.external.ssh import ssh_argv
from suite.files.paths import ROOT
from suite.launch.nodes import facts
from suite.launch.ssh.run import SshPlace
from suite.matrix.resources import Resources
from suite.schema.record import Environment

TIMEOUT_S: Final = 300.0
_LAST_LINES: Final = 3


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
    found = [_parse(host, text, TypeAdapter(Environment).validate_json) for host, text in said.items()]
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
    there = {host: _parse(host, text, facts.read) for host, text in said.items()}
    reports = {host: found.report for host, found in there.items()}
    for difference in differences(reports):
        place.say(f"The hosts differ: {difference}")
        if not difference.subject.startswith("check ") and not differing_is_fine:
            raise EnvironmentNotFit(
                f"The hosts differ: {difference}. The slowest of them would set every figure. Leave out those that "
                "differ, or run anyway with --ignore-env-check."
            )
    head = there[place.hosts[0]]
    return facts.NodeFacts(environment=head.environment, report=worst([found.report for found in there.values()]))


def worst(reports: Sequence[Report]) -> Report:
    """The first report with a failure, else the first with a warning: what only one host finds must be shown."""
    return min(reports, key=lambda report: (not report.failures, not report.warnings))


def _ask(place: SshPlace, command: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """What the command prints on each host. Raises SchedulerError for one that cannot run it."""

    def ask(host: str) -> str:
        argv = ssh_argv(command, host=host, working_dir=ROOT, config=place.config)
        run = run_program(argv, environ={**environ, "LC_ALL": "C"}, timeout_s=TIMEOUT_S)
        if run.end == "ended" and run.exit_code == 0:
            return run.stdout
        last = " ".join(run.stderr.strip().splitlines()[-_LAST_LINES:]) or "it said nothing"
        raise SchedulerError(
            f"{host} does not run {' '.join(command[1:3])} (ssh {run.end}, exit code {run.exit_code}): {last}\n"
            f"`ssh {host} true` must work without a password, and the checkout and its Python must be in the same "
            "folders there."
        )

    with ThreadPoolExecutor(max_workers=min(32, len(place.hosts))) as pool:
        return dict(zip(place.hosts, pool.map(ask, place.hosts), strict=True))


def _parse[T](host: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except (ValueError, ValidationError) as error:
        raise SchedulerError(
            f"{host} gives another answer than expected ({error}). Its login scripts must print nothing, and "
            f"the checkout in {ROOT} must be the same as here."
        ) from error
