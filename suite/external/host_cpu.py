"""Use of a host's cores between two readings of the kernel's counters.

psutil's own percentages divide by at least one second of CPU time. On few cores, read several times a second, they
understate idle time (85 % busy instead of 62 %: two cores, 5 Hz, psutil 7.2.2), so they are not used.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, kw_only=True)
class CpuUse:
    """Percentages of the CPU time of all cores; None at the first reading."""

    busy: float | None = None  # time that processes wanted, whether they got it or not
    stolen: float | None = None  # part of it that a hypervisor gave to others
    others: float | None = None  # part of it that this system's processes outside the run used


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Seconds since the system booted, of all cores together."""

    total_s: float
    idle_s: float
    stolen_s: float
    own_s: float  # CPU time of the reading process, which is part of the run
    monotonic_s: float


def read_counters() -> Counters:
    times = psutil.cpu_times()
    return Counters(
        total_s=sum(times) - times.guest - times.guest_nice,  # user and nice include these
        idle_s=times.idle + times.iowait,
        stolen_s=times.steal,
        own_s=time.process_time(),
        monotonic_s=time.monotonic(),
    )


class HostCpu:
    """Computes use since the last reading."""

    def __init__(self, read: Callable[[], Counters] = read_counters) -> None:
        self._read = read
        self._last: Counters | None = None

    def use(self, rank_percents: Sequence[float | None]) -> CpuUse:
        """Return the use since the last call. ``rank_percents``: of each rank, 100 is one core; None if unknown."""
        last, now = self._last, self._read()
        self._last = now
        if last is None or now.total_s <= last.total_s:
            return CpuUse()
        total_s = now.total_s - last.total_s
        busy_s, stolen_s = total_s - (now.idle_s - last.idle_s), now.stolen_s - last.stolen_s
        known = [percent for percent in rank_percents if percent is not None]
        ranks_s = sum(known) / 100 * (now.monotonic_s - last.monotonic_s)
        others_s = busy_s - stolen_s - ranks_s - (now.own_s - last.own_s)
        return CpuUse(
            busy=_percent(busy_s, total_s),
            stolen=_percent(stolen_s, total_s),
            # May be below 0: counters tick, so single readings err both ways and only their mean is meaningful.
            others=100 * others_s / total_s if known and len(known) == len(rank_percents) else None,
        )


def _percent(part_s: float, total_s: float) -> float:
    return min(100.0, max(0.0, 100 * part_s / total_s))  # a virtual machine's idle time sometimes decreases
