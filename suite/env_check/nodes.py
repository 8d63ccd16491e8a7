"""Runs env_check on every node of a Slurm allocation, or over ssh, and compares the reports.

A node that does not answer is one failure; the reports of the other nodes are read all the same.
"""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from suite.env_check.check import Check
from suite.env_check.report import Report, read_report
from suite.errors import UsageError
from suite.external.program import ProgramRun, run_program
from suite.external.ssh import AT_ONCE, FAILED, run_on_hosts
from suite.files.input_file import read_text

TIMEOUT_S: Final = 300.0
CONNECT_TIMEOUT_S: Final = 10
NOT_REPORTED: Final = "not reported"
_BANDWIDTH: Final = "NCCL bus bandwidth [GB/s]"
SLOWER: Final = 0.9  # a bandwidth below this part of the fastest node's is a difference
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
) -> Collected:
    """Run ``command`` on every node. ``folder``: empty, and on a file system that all nodes share.

    If srun cannot start one task, it ends all tasks, also on healthy nodes. So each node without an answer is asked
    once more, by a separate srun.
    """

    def ask(*asked: str) -> dict[str, Report | NodeFailure]:
        argv = slurm_argv(command, nodes=asked, folder=folder, timeout_s=TIMEOUT_S)
        run = run_program(argv, environ=environ, timeout_s=TIMEOUT_S)
        return {node: written(node, run) for node in asked}

    def written(node: str, run: ProgramRun) -> Report | NodeFailure:
        output, errors = folder / f"{node}.json", folder / f"{node}.txt"
        messages = (read_text(errors) if errors.exists() else "") or run.stderr
        return _answer(node, read_text(output) if output.exists() else None, run, messages, program="srun")

    answers = ask(*nodes)
    ended = [
        failure.node
        for failure in answers.values()
        if isinstance(failure, NodeFailure) and failure.fault in ("no_report", "bad_report")
    ]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        for answer in pool.map(ask, ended if len(nodes) > 1 else ()):
            answers |= answer
    return _sorted_out(answers)


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
    runs = run_on_hosts(
        command, hosts=hosts, working_dir=working_dir, environ=environ, config=config, timeout_s=timeout_s
    )
    return _sorted_out({host: _answer(host, run.stdout, run, run.stderr, program="ssh") for host, run in runs.items()})


def _sorted_out(answers: Mapping[str, Report | NodeFailure]) -> Collected:
    return Collected(
        reports={node: answer for node, answer in answers.items() if isinstance(answer, Report)},
        failures=tuple(answer for answer in answers.values() if isinstance(answer, NodeFailure)),
    )


def _answer(node: str, text: str | None, run: ProgramRun, messages: str, *, program: str) -> Report | NodeFailure:
    """Return the node's report; without one, a failure that says how ``program`` ended."""
    problem: ValueError | None = None
    if text:
        try:
            return read_report(text)
        except ValueError as error:
            problem = error
    last_line = _last_line(messages, node)
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


def _last_line(messages: str, node: str) -> str:
    """Return the last line that names this node (srun writes about all nodes), else the last line."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    about_node = [line for line in lines if re.search(rf"(?<![\w-]){re.escape(node)}(?![\w-])", line)]
    return next(reversed(about_node or lines), "no message")


@dataclass(frozen=True, kw_only=True)
class Group:
    value: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A fact or verdict that differs between nodes: each value with its nodes, most nodes first."""

    subject: str
    groups: tuple[Group, ...]

    def __str__(self) -> str:
        return f"{self.subject}: " + "; ".join(f"{group.value} on {', '.join(group.nodes)}" for group in self.groups)


# Subject, check, and path in its evidence: keys joined by dots, ``[]`` for every element of a list.
_FACTS: Final = (
    ("driver", "driver_versions", "kernel_version"),
    ("GPUs", "gpus_present", "gpus[].name"),
    ("GPU memory [GB]", "gpus_present", "gpus[].memory_gb"),
    ("highest SM clock [MHz]", "gpus_present", "gpus[].sm_clock_max_mhz"),
    ("clock setting [MHz]", "gpus_present", "gpus[].sm_clock_setting_mhz"),
    ("power limit [W]", "gpus_present", "gpus[].power_limit_w"),
    ("ECC", "gpus_present", "gpus[].ecc"),
    ("MIG", "gpus_present", "gpus[].mig"),
    ("NVLinks active", "gpus_present", "gpus[].nvlinks_active"),
    ("NCCL", "nccl_all_reduce", "result.nccl"),
    (_BANDWIDTH, "nccl_all_reduce", "result.bus_bandwidth_gb_s"),
    ("cores", "cores_per_gpu", "values.num_cpus"),
    ("libc", "libc", "values.libc_version"),
    ("assets", "asset_root", "manifest_sha256"),
)

# These checks describe a moment, not a machine: their verdicts do not make nodes different.
_MOMENTARY: Final = frozenset({"cpu_load", "core_speed", "gpu_throttling"})


def differences(reports: Mapping[str, Report]) -> tuple[Difference, ...]:
    """Return the differences, facts before verdicts. ``reports``: node -> its report."""
    compared = [_difference("stack", {node: report.stack for node, report in reports.items()})]
    for subject, check, keys in _FACTS:
        values = {node: _value(report, check, keys) for node, report in reports.items()}
        if subject != _BANDWIDTH or not _are_close(tuple(values.values())):
            compared.append(_difference(subject, {node: _text(value) for node, value in values.items()}))
    names = dict.fromkeys(check.name for report in reports.values() for check in report.checks)
    compared += [
        _difference(f"check {name}", {node: _verdict(report, name) for node, report in reports.items()})
        for name in names
        if name not in _MOMENTARY
    ]
    return tuple(difference for difference in compared if difference)


def _difference(subject: str, values: Mapping[str, str]) -> Difference | None:
    if len(set(values.values())) <= 1:
        return None
    groups = [
        Group(value=value, nodes=tuple(node for node, other in values.items() if other == value))
        for value in dict.fromkeys(values.values())
    ]
    return Difference(subject=subject, groups=tuple(sorted(groups, key=lambda group: -len(group.nodes))))


def _verdict(report: Report, name: str) -> str:
    check = _check(report, name)
    if check is None:
        return NOT_REPORTED
    return check.verdict.replace("_", " ") + (f" ({check.fault})" if check.fault else "")


def _check(report: Report, name: str) -> Check | None:
    return next((check for check in report.checks if check.name == name), None)


def _value(report: Report, name: str, keys: str) -> Any:
    check = _check(report, name)
    if check is None:
        return None
    values = list(_walk(check.evidence, keys.split(".")))
    if "[]" not in keys:
        return next(iter(values), None)
    return None if values and set(values) == {None} else tuple(values)


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield value
        return
    key, is_list = path[0].removesuffix("[]"), path[0].endswith("[]")
    inside = value.get(key) if isinstance(value, Mapping) else None
    for item in (inside or ()) if is_list else (inside,):
        yield from _walk(item, path[1:])


def _are_close(values: tuple[Any, ...]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float)]
    return len(numbers) == len(values) and min(numbers, default=0) >= SLOWER * max(numbers, default=0)


def _text(value: Any) -> str:
    """Format a value. A list gives ``"8 x NVIDIA H200"``, so that a missing GPU shows."""
    if isinstance(value, tuple):
        return ", ".join(f"{count} x {_text(item)}" for item, count in Counter(value).items()) or "none"
    return f"{value:.1f}" if isinstance(value, float) else NOT_REPORTED if value is None else str(value)
