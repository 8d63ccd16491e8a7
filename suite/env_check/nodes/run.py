"""Runs env_check on every node of a Slurm allocation, or over ssh, and collects the reports.

A node that does not answer is one failure; the reports of the other nodes are read all the same.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.env_check.report import Report
from suite.env_check.report import read as read_report
from suite.errors import UsageError
from suite.external.program import ProgramRun, run_program
from suite.external.ssh import FAILED, ssh_argv
from suite.files.input_file import read_text

TIMEOUT_S: Final = 300.0
CONNECT_TIMEOUT_S: Final = 10
AT_ONCE: Final = 32  # most nodes that are asked at the same time
SHOWN_CHARACTERS: Final = 80  # of an output that is not a report

# Slurm's own %N in --output is the machine's host name, which need not be the node's name.
TO_FILES: Final = 'exec "$@" >"$0/$SLURMD_NODENAME.json" 2>"$0/$SLURMD_NODENAME.txt"'

NodeFault = Literal["unreachable", "timed_out", "no_report", "bad_report", "not_started"]


@dataclass(frozen=True, kw_only=True)
class NodeFailure:
    node: str
    fault: NodeFault
    message: str
    repair: str


@dataclass(frozen=True, kw_only=True)
class Collected:
    reports: Mapping[str, Report]  # node, as named in the request -> its report
    failures: tuple[NodeFailure, ...]


def slurm_nodes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the nodes of this process's Slurm allocation. Raises UsageError outside an allocation."""
    compressed = environ.get("SLURM_JOB_NODELIST")
    if not compressed:
        raise UsageError(
            "--nodes without names needs a Slurm allocation, and SLURM_JOB_NODELIST is not set. Run it inside salloc "
            "or sbatch, or name the nodes: --nodes host1,host2 (over ssh)."
        )
    run = run_program(("scontrol", "show", "hostnames", compressed), environ=environ, timeout_s=CONNECT_TIMEOUT_S)
    if run.end != "ended" or run.exit_code != 0:
        raise UsageError(
            f"scontrol cannot expand SLURM_JOB_NODELIST={compressed}: {run.stderr.strip() or run.end}. Name the nodes: "
            "--nodes host1,host2 (over ssh)."
        )
    return tuple(run.stdout.split())


def slurm_argv(command: Sequence[str], *, nodes: Sequence[str], folder: Path, timeout_s: float) -> tuple[str, ...]:
    """Return the srun command: one task per node, which writes ``folder/<node>.json``. All nodes share ``folder``."""
    return (
        "srun",
        f"--nodelist={','.join(nodes)}",
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        "--ntasks-per-node=1",
        "--overlap",  # this process may itself run in a step
        "--cpu-bind=none",  # otherwise the check would see one core
        "--kill-on-bad-exit=0",  # exit codes 1 and 2 are answers
        "--no-kill",  # other nodes still answer after one fails, if the allocation has --no-kill too
        "--wait=0",
        "--input=none",
        f"--time={math.ceil(timeout_s / 60)}",
        "sh",
        "-c",
        TO_FILES,
        str(folder),
        *command,
    )


def collect_slurm(
    command: Sequence[str],
    *,
    nodes: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float = TIMEOUT_S,
) -> Collected:
    """Run ``command`` on every node. ``folder``: empty, and on a file system that all nodes share.

    If srun cannot start one task, it ends all tasks, also on healthy nodes. So each node without an answer is asked
    once more, by a separate srun.
    """

    def ask(*asked: str) -> dict[str, Report | NodeFailure]:
        argv = slurm_argv(command, nodes=asked, folder=folder, timeout_s=timeout_s)
        run = run_program(argv, environ=environ, timeout_s=timeout_s)
        return {node: _written(node, run, folder) for node in asked}

    answers = ask(*nodes)
    silent = [node for node in nodes if _may_have_been_ended(answers[node])] if len(nodes) > 1 else []
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        for answer in pool.map(ask, silent):
            answers |= answer
    return _sorted_out(answers)


def _may_have_been_ended(answer: Report | NodeFailure) -> bool:
    return isinstance(answer, NodeFailure) and answer.fault in ("no_report", "bad_report")


def _written(node: str, run: ProgramRun, folder: Path) -> Report | NodeFailure:
    output, errors = folder / f"{node}.json", folder / f"{node}.txt"
    said = (read_text(errors) if errors.exists() else "") or run.stderr
    text = read_text(output) if output.exists() else None
    return _answer(node, text, run, said, program="srun")


def collect_ssh(
    command: Sequence[str],
    *,
    hosts: Sequence[str],
    working_dir: Path,
    environ: Mapping[str, str],
    config: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Collected:
    """Run ``command`` on every host at the same time. ``config``: ssh's configuration file."""

    def ask(host: str) -> Report | NodeFailure:
        argv = ssh_argv(command, environ=environ, host=host, working_dir=working_dir, config=config)
        run = run_program(argv, environ=environ, timeout_s=timeout_s)
        return _answer(host, run.stdout, run, run.stderr, program="ssh")

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return _sorted_out(dict(zip(hosts, pool.map(ask, hosts), strict=True)))


def _sorted_out(answers: Mapping[str, Report | NodeFailure]) -> Collected:
    return Collected(
        reports={node: answer for node, answer in answers.items() if isinstance(answer, Report)},
        failures=tuple(answer for answer in answers.values() if isinstance(answer, NodeFailure)),
    )


def _answer(node: str, text: str | None, run: ProgramRun, said: str, *, program: str) -> Report | NodeFailure:
    """Return the node's report; without one, a failure that says how ``program`` ended."""
    problem: ValueError | None = None
    if text:
        try:
            return read_report(text)
        except ValueError as error:
            problem = error
    last_line = _last_line(said, node)
    if run.end == "not_started":
        return NodeFailure(node=node, fault="not_started", message=run.stderr, repair=f"Install {program}.")
    if run.end == "hung":
        message = f"no report in {run.wall_s:.0f} s; last: {last_line}"
        repair = f"Run env_check on {node} itself; processes left behind there may occupy a GPU."
        return NodeFailure(node=node, fault="timed_out", message=message, repair=repair)
    if program == "ssh" and run.exit_code == FAILED:
        repair = f"Make `ssh {shlex.quote(node)} true` work without a password."
        return NodeFailure(node=node, fault="unreachable", message=last_line, repair=repair)
    repair = f"Run env_check on {node} itself; the checkout must be in the same folder there, with the same Python."
    if problem:
        message = (
            f"{problem}; it begins: {(text or '').strip().partition('\n')[0][:SHOWN_CHARACTERS]}; last: {last_line}"
        )
        before = "Let the login scripts there print nothing without a terminal. " if program == "ssh" else ""
        return NodeFailure(node=node, fault="bad_report", message=message, repair=before + repair)
    message = f"exit code {run.exit_code}; last: {last_line}"
    return NodeFailure(node=node, fault="no_report", message=message, repair=repair)


def _last_line(said: str, node: str) -> str:
    """Return the last line that names this node (srun writes about all nodes), else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    about_node = [line for line in lines if re.search(rf"(?<![\w-]){re.escape(node)}(?![\w-])", line)]
    return next(reversed(about_node or lines), "no message")
