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
from suite.schema.record import CaseResult, Environment, RunRecord
from suite.statistics.reduce import counted_iterations, iteration_times_s, marked_iterations

# Multiple of the fastest probe. Probes form two groups, with almost none between 1.2 and 1.5 times the host's fastest
# (H200 host H, reports/results/2026.11/h200-x2-envs). On all 20 hosts of that version together, 42 % of 7,851 probes
# take less than 1.3 times the fastest of their host and rank, 49 % over 1.6 times, and 9 % lie between. Fresh processes
# differ by less: the fastest probe of nine in ten rounds is below 1.3.
SLOWED: Final = 1.3
MIN_LOOKS: Final = 5  # of each kind, so that the iterations after them can be compared
WORTH_SAYING: Final = 0.05  # part of the looks; fewer do not move a median

type Host = tuple[str | None, str | None]
type _Look = tuple[bool, float | None]


@dataclass(frozen=True, kw_only=True)
class CoreSpeed:
    """Core speed in rounds of one case. A look is the slowest rank's probe after a marked iteration of the window."""

    looks: int
    slowed: int  # looks over ``SLOWED`` times the fastest probe of their host
    unslowed_iteration_s: float | None = None  # median after looks that are not slowed; None for too few
    slowed_iteration_s: float | None = None  # median after slowed looks; None for too few

    @property
    def slower_by(self) -> float | None:
        """Relative change of the iteration time after a slowed look; None if one kind has too few."""
        if self.unslowed_iteration_s is None or self.slowed_iteration_s is None:
            return None
        return self.slowed_iteration_s / self.unslowed_iteration_s - 1


def host_of(environment: Environment) -> Host:
    """The key of hosts with the same cores."""
    return environment.host_label, environment.cpu_model


def fastest_probes_s(records: Sequence[RunRecord]) -> dict[Host, float]:
    """The shortest probe of any rank of any GPU case, by host."""
    fastest: dict[Host, float] = {}
    for record in records:
        probes = [probe_s for column in _columns(record) for probe_s in column if probe_s is not None]
        if probes:
            host = host_of(record.environment)
            fastest[host] = min(fastest.get(host, probes[0]), *probes)
    return fastest


def core_speed(records: Sequence[RunRecord], fastest_s: Mapping[Host, float]) -> CoreSpeed | None:
    """Core speed in ``records`` of one case. ``fastest_s`` has the fastest probe of each host. None without probes.

    Raises ValueError as ``suite.statistics.reduce.window`` does.
    """
    looks = [look for record in records for look in _looks(record, fastest_s)]
    if not looks:
        return None
    after = {kind: [time_s for is_slowed, time_s in looks if is_slowed is kind and time_s] for kind in (False, True)}
    medians = {kind: statistics.median(times_s) for kind, times_s in after.items() if len(times_s) >= MIN_LOOKS}
    return CoreSpeed(
        looks=len(looks),
        slowed=sum(is_slowed for is_slowed, _ in looks),
        unslowed_iteration_s=medians.get(False),
        slowed_iteration_s=medians.get(True),
    )


@dataclass(frozen=True, kw_only=True)
class SlowedCores:
    """How slowed cores affected some cases."""

    looks: int  # marked iterations with a probe
    slowed: int  # of them
    fastest_s: tuple[float, ...]  # the fastest probe of each host
    slower_by: float | None  # the iteration after a slowed core, median of cases; None: too few looks
    cases: int  # that this is a median of

    @property
    def cost_in_words(self) -> str | None:
        """Such as ``22% longer (median of 8 cases)``."""
        if self.slower_by is None:
            return None
        cost = round(self.slower_by, 2)
        how = f"{abs(cost):.0%} {'longer' if cost > 0 else 'less'}" if cost else "as long"
        return f"{how} (median of {counted(self.cases, 'case')})"

    @property
    def fastest_in_words(self) -> str:
        return ", ".join(f"{1e6 * fastest:.0f} µs" for fastest in self.fastest_s)

    def __str__(self) -> str:
        said = (
            f"Cores were shared or slowed: after {self.slowed} of {self.looks} marked iterations a fixed piece of "
            f"Python's work took over {SLOWED:g} times as long as at best ({self.fastest_in_words})"
        )
        return f"{said}; the next iteration took {self.cost_in_words}." if self.cost_in_words else f"{said}."


def slowed_cores(results: Sequence[CaseResult], fastest_s: Mapping[Host, float]) -> SlowedCores | None:
    """How slowed cores affected these cases; None if under ``WORTH_SAYING`` of the looks are slowed.

    Raises ValueError as ``core_speed`` does.
    """
    found = [speed for result in results if (speed := core_speed(result.completed, fastest_s))]
    looks, slowed = sum(speed.looks for speed in found), sum(speed.slowed for speed in found)
    if not looks or slowed < WORTH_SAYING * looks:
        return None
    costs = [speed.slower_by for speed in found if speed.slower_by is not None]
    return SlowedCores(
        looks=looks,
        slowed=slowed,
        fastest_s=tuple(sorted(fastest_s.values())),
        slower_by=statistics.median(costs) if costs else None,
        cases=len(costs),
    )


def _looks(record: RunRecord, fastest_s: Mapping[Host, float]) -> Iterator[_Look]:
    """Yield whether a rank's probe was over the limit, and the time of the iteration that follows it."""
    probes_s = _probes_s(record)
    if not any(probes_s):
        return
    limit_s = SLOWED * fastest_s[host_of(record.environment)]
    times_s, counted = iteration_times_s(record), set(counted_iterations(record))
    for index in marked_iterations(record):
        probe_s = probes_s[index]
        if probe_s is not None:
            yield probe_s > limit_s, times_s[index + 1] if index + 1 in counted else None


def _probes_s(record: RunRecord) -> list[float | None]:
    """The slowest rank's probe of every iteration, None if a rank has none; [] for a case without GPUs."""
    columns = _columns(record)
    return [
        max(found) if len(found := [probe_s for probe_s in row if probe_s is not None]) == len(columns) else None
        for row in zip(*columns, strict=False)
    ]


def _columns(record: RunRecord) -> list[Sequence[float | None]]:
    """The probes of every rank; [] for CPU cases and rounds that do not count."""
    if record.case.device == "cpu" or not record.counts:
        return []
    return [rank.samples.get("core_probe_time_s", ()) for rank in record.ranks]
