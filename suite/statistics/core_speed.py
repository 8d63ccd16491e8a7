"""Measure how fast the ranks' CPU cores were, and how slower ones affected the iterations. Pure.

A fast GPU waits for the one thread that launches its kernels, so the speed of that thread's core limits training. Each
rank times a fixed piece of the interpreter's work, a probe, after every marked iteration
(``suite.external.core_probe``). If another hardware thread or another tenant's machine shares the core, the probe takes
up to twice as long, for seconds at a time. Utilisation and stolen time do not show this. Only GPU cases are examined:
on CPU ranks the physics' own threads share the cores.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.reduce import counted_iterations, iteration_times_s, marked_iterations

# Multiple of the fastest probe. Probes form two groups, with almost none between 1.2 and 1.5 times the host's fastest
# (H200 host H, reports/results/2026.11/h200-x2-envs). On all 20 hosts of that version together, 42 % of 7,851 probes
# take less than 1.3 times the fastest of their host and rank, 49 % over 1.6 times, and 9 % lie between. Fresh processes
# differ by less: the fastest probe of nine in ten rounds is below 1.3.
SLOWED: Final = 1.3
MIN_LOOKS: Final = 5  # of each kind, so that the iterations after them can be compared
WORTH_SAYING: Final = 0.05  # part of the looks; fewer do not move a median

type Host = tuple[str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class CoreSpeed:
    """Core speed in rounds of one case. A look is the slowest rank's probe after a marked iteration of the window."""

    looks: int
    slowed: int  # looks over ``SLOWED`` times the fastest probe of their host
    slower_by: float | None  # relative change of the iteration time after a slowed look; None if one kind has too few


def fastest_probes_s(records: Sequence[RunRecord]) -> dict[Host, float]:
    """The shortest probe of any rank of any case with a speed, by host: the key of machines with the same cores."""
    fastest: dict[Host, float] = {}
    for record in records:
        probes = [probe_s for column in _columns(record) for probe_s in column if probe_s is not None]
        if probes:
            host = _host(record)
            fastest[host] = min(fastest.get(host, probes[0]), *probes)
    return fastest


def core_speed(records: Sequence[RunRecord], fastest_s: Mapping[Host, float]) -> CoreSpeed | None:
    """Core speed in ``records`` of one case. ``fastest_s`` has the fastest probe of each host. None without probes.

    Raises ValueError as ``suite.statistics.reduce.window`` does.
    """
    looks = [look for record in records for look in _looks(record, fastest_s)]
    if not looks:
        return None
    unslowed, slowed = (
        [time_s for is_slowed, time_s in looks if is_slowed is kind and time_s] for kind in (False, True)
    )
    are_enough = min(len(unslowed), len(slowed)) >= MIN_LOOKS
    return CoreSpeed(
        looks=len(looks),
        slowed=sum(is_slowed for is_slowed, _ in looks),
        slower_by=statistics.median(slowed) / statistics.median(unslowed) - 1 if are_enough else None,
    )


def slowed_cores(results: Sequence[CaseResult], fastest_s: Mapping[Host, float]) -> str | None:
    """Say how slowed cores affected these cases; None if under ``WORTH_SAYING`` of the looks are slowed.

    Raises ValueError as ``core_speed`` does.
    """
    speeds = [speed for result in results if (speed := core_speed(result.completed, fastest_s))]
    looks, slowed = sum(speed.looks for speed in speeds), sum(speed.slowed for speed in speeds)
    if not looks or slowed < WORTH_SAYING * looks:
        return None
    fastest = ", ".join(f"{1e6 * fastest:.0f} µs" for fastest in sorted(fastest_s.values()))
    text = (
        f"Cores were shared or slowed: after {slowed} of {looks} marked iterations a fixed piece of Python's work took "
        f"over {SLOWED:g} times as long as at best ({fastest})"
    )
    costs = [speed.slower_by for speed in speeds if speed.slower_by is not None]
    if not costs:
        return f"{text}."
    cost = round(statistics.median(costs), 2)
    longer = f"{abs(cost):.0%} {'longer' if cost > 0 else 'less'}" if cost else "as long"
    return f"{text}; the next iteration took {longer} (median of {counted(len(costs), 'configuration')})."


def _looks(record: RunRecord, fastest_s: Mapping[Host, float]) -> Iterator[tuple[bool, float | None]]:
    """Yield whether the slowest rank's probe was over the limit, and the time of the iteration that follows it."""
    columns = _columns(record)
    if not (columns and all(columns)):
        return
    times_s, window = iteration_times_s(record), set(counted_iterations(record))
    for index in marked_iterations(record):
        probes_s = [probe_s for column in columns if (probe_s := column[index]) is not None]
        if len(probes_s) == len(columns):
            is_slowed = max(probes_s) > SLOWED * fastest_s[_host(record)]
            yield is_slowed, times_s[index + 1] if index + 1 in window else None


def _host(record: RunRecord) -> Host:
    return record.environment.host_label, record.environment.cpu_model


def _columns(record: RunRecord) -> list[Sequence[float | None]]:
    """The probes of every rank; [] for cases without a speed, and rounds that do not count."""
    if not (record.case.has_speed and record.counts):
        return []
    return [rank.samples.get("core_probe_time_s", ()) for rank in record.ranks]
