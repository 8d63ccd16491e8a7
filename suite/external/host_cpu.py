"""What the cores of a host do between two readings of the kernel's counters.

psutil's own percentages are not used: they divide by at least one second of CPU time, so on few cores and several times
a second they take idle time for less than it is (85 % busy where it was 62 %: two cores, 5 Hz, psutil 7.2.2).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, kw_only=True)
class CpuUse:
    """Percentages of the CPU time of all cores; None at first, when there is nothing to count from."""

    busy: float | None = None  # wanted, whether it was got or not
    stolen: float | None = None  # part of it that a hypervisor gave to others instead
    others: float | None = None  # part of it used by processes of this system that are not the run's


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Seconds since the system booted, of all cores together."""

    total_s: float
    idle_s: float
    stolen_s: float
    own_s: float  # CPU time of the reading process, which counts to the run
    monotonic_s: float


def read_counters() -> Counters:
    times = psutil.cpu_times()
    return Counters(
        total_s=sum(times) - times.guest - times.guest_nice,  # which user and nice hold already
        idle_s=times.idle + times.iowait,
        stolen_s=times.steal,
        own_s=time.process_time(),
        monotonic_s=time.monotonic(),
    )


class HostCpu:
    """Remembers the last counters."""

    def __init__(self, read: Callable[[], Counters] = read_counters) -> None:
        self._read = read
        self._last: Counters | None = None

    def use(self, rank_percents: Sequence[float | None]) -> CpuUse:
        """``rank_percents`` since the last call, 100 is one core; where one is not known the others are neither."""
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
            # Not held to 0: counters tick, so single readings err both ways and only their mean says something.
            others=100 * others_s / total_s if known and len(known) == len(rank_percents) else None,
        )


def _percent(part_s: float, total_s: float) -> float:
    return min(100.0, max(0.0, 100 * part_s / total_s))  # idle time of a virtual machine has been seen to go back
