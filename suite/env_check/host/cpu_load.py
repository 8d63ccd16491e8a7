"""Checks whether other processes use the CPU: they slow every run.

One busy process on two cores made an iteration take 1.3 to 5.6 times as long (a virtual machine, 2026-11-22).
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from suite.env_check.check import Judgement, Subject
from suite.external.host_cpu import Counters, HostCpu, read_counters
from suite.statistics.round_flags import OTHERS_PERCENT

LOOK_S: Final = 1.0
NAMED: Final = 3  # number of busiest processes in a report
WORTH_NAMING_S: Final = 0.1  # CPU time within ``LOOK_S``
NO_RANK: Final = (0.0,)  # HostCpu subtracts the CPU time of a run; here nothing runs


@dataclass(frozen=True, kw_only=True)
class Busy:
    """The share of one core that a process used: 100 is a whole core; several threads can use more."""

    pid: int
    name: str
    percent: float


@dataclass(frozen=True, kw_only=True)
class LoadFacts:
    others_percent: float | None  # share of the CPU time of all cores, without env_check's own
    busiest: tuple[Busy, ...]  # visible processes, busiest first
    message: str  # why the load is unknown; empty if it is known


def read(look_s: float = LOOK_S, *, counters: Callable[[], Counters] = read_counters) -> LoadFacts:
    """Watch the host for ``look_s`` seconds while this process does nothing."""
    host, own_pid, start_s, before = HostCpu(counters), os.getpid(), time.monotonic(), _cpu_times_s()
    host.use(NO_RANK)
    time.sleep(look_s)
    others, after = host.use(NO_RANK).others, _cpu_times_s()
    elapsed_s = time.monotonic() - start_s
    if others is None:
        return LoadFacts(others_percent=None, busiest=(), message="the kernel's counters of CPU time do not advance")
    used_s = {key: spent_s - before[key] for key, spent_s in after.items() if key in before and key[0] != own_pid}
    at_work = [key for key, spent_s in used_s.items() if spent_s >= WORTH_NAMING_S]
    return LoadFacts(
        others_percent=max(0.0, others),  # idle time may run ahead by one tick
        busiest=tuple(
            Busy(pid=pid, name=name, percent=100 * used_s[pid, name] / elapsed_s)
            for pid, name in sorted(at_work, key=lambda key: -used_s[key])[:NAMED]
        ),
        message="",
    )


def _cpu_times_s() -> Mapping[tuple[int, str], float]:
    """Return the CPU seconds of every visible process, keyed by pid and name."""
    found = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None:
            found[process.pid, str(process.info["name"])] = float(times.user + times.system)
    return found


def judge_cpu_load(facts: LoadFacts) -> Judgement:
    subject = Subject(f"at most {OTHERS_PERCENT:g} %", facts)
    if facts.others_percent is None:
        return subject.not_checked(facts.message)
    found = f"{facts.others_percent:.1f} % of the CPU time of all cores is in use"
    if facts.others_percent > OTHERS_PERCENT:
        return subject.warning("host_busy", found, _repair(facts.busiest))
    return subject.ok(found)


def _repair(busiest: Sequence[Busy]) -> str:
    names = ", ".join(f"{busy.name} (pid {busy.pid}, {busy.percent:.0f} % of a core)" for busy in busiest)
    seen = f"Busiest here: {names}." if names else "No visible process causes this load: look on the host."
    return f"{seen} End this load or wait: it slows every run by an unknown amount."
