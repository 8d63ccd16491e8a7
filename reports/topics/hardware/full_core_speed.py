"""Cases that several machines measured: how far apart machines are, as measured and at full core speed. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.analysis.curves import as_shipped
from reports.analysis.same_work import work_of
from reports.sets.version import Version
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.core_speed import (
    FullSpeed,
    Host,
    RankOfHost,
    at_full_speed,
    fastest_rank_probes_s,
    host_of,
)
from suite.statistics.intervals import mean_of
from suite.statistics.reduce import round_time_s


@dataclass(frozen=True, kw_only=True)
class MachineSpeed:
    """One case on one machine, as whoever measured labelled it."""

    label: str
    rounds: int
    iteration_s: float  # the plain figure
    full: FullSpeed | None  # None if no round probed its cores
    fastest_probe_s: float | None  # of any of the case's ranks, in any case of the machine

    @property
    def full_s(self) -> float | None:
        return None if self.full is None else self.full.iteration_s


@dataclass(frozen=True, kw_only=True)
class SharedCase:
    """A case that several machines with one kind of GPU measured, the quickest first."""

    case: Case  # of one of them: the others differ in nothing that changes an iteration
    machines: tuple[MachineSpeed, ...]

    @property
    def apart(self) -> float:
        """The slowest machine's plain figure over the quickest's."""
        return _apart([machine.iteration_s for machine in self.machines])

    @property
    def both(self) -> tuple[float, float] | None:
        """The same, plain and at full core speed, of the machines that have both; None for fewer than two."""
        having = [(machine.iteration_s, machine.full_s) for machine in self.machines if machine.full_s is not None]
        if len(having) < 2:  # noqa: PLR2004  (one machine has none to be compared with)
            return None
        return _apart([plain_s for plain_s, _ in having]), _apart([full_s for _, full_s in having if full_s])


@dataclass(frozen=True, kw_only=True)
class Closer:
    """Machines of all cases for which two or more have figures at full core speed."""

    cases: int
    plain: float  # the slowest machine over the quickest, median of the cases
    full: float  # the same at full core speed
    closer: int  # cases in which the machines come closer

    @property
    def by_chance(self) -> float:
        """How probable so many cases are if each comes closer or further by chance: the sign test."""
        ways = sum(math.comb(self.cases, number) for number in range(self.closer, self.cases + 1))
        return float(ways / 2**self.cases)


def come_closer(found: Iterable[SharedCase]) -> Closer | None:
    """Compare machines at full core speed and as measured; None where no two of one case have both."""
    both = [apart for one in found if (apart := one.both) is not None]
    if not both:
        return None
    plain, full = (statistics.median(column) for column in zip(*both, strict=True))
    closer = sum(at_full < as_measured for as_measured, at_full in both)
    return Closer(cases=len(both), plain=plain, full=full, closer=closer)


def shared_cases_of(version: Version) -> tuple[SharedCase, ...]:
    """Find those of the project's own sets: labels of hosts are whoever's measured.

    Sets that shared their machines are left out: the machines would look slower than they are.
    """
    own = [one for one in version.sets if not one.contributor and one.shared_machine != "yes"]
    return shared_cases(result for one in own for result in one.campaign.results)


def shared_cases(results: Iterable[CaseResult]) -> tuple[SharedCase, ...]:
    """Find the cases that several machines measured, the furthest apart first.

    They trained on GPUs of one node as shipped.
    """
    shipped = [one for one in as_shipped(results) if one.completed[0].environment.host_label]
    fastest_s = fastest_rank_probes_s([record for result in shipped for record in result.completed])
    found: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in shipped:
        found.setdefault((_gpus(result), *work_of(result.case)), []).append(result)
    shared = (_shared(those, fastest_s) for those in found.values())
    return tuple(sorted((one for one in shared if len(one.machines) > 1), key=lambda one: -one.apart))


def _gpus(result: CaseResult) -> str:
    return ", ".join(sorted({gpu.name for record in result.completed for gpu in record.environment.gpus}))


def _shared(results: Sequence[CaseResult], fastest_s: Mapping[RankOfHost, float]) -> SharedCase:
    by_host: dict[Host, list[RunRecord]] = {}
    # Of a machine with several cases that of most runs counts, so its figure is that of the case's own page.
    first = results[0].case.case_id
    for result in sorted(results, key=lambda one: (-len(one.completed), one.case.case_id != first)):
        for host in {host_of(record.environment) for record in result.completed} - by_host.keys():
            by_host[host] = [record for record in result.completed if host_of(record.environment) == host]
    machines = (_machine(host, records, fastest_s) for host, records in by_host.items())
    return SharedCase(
        case=results[0].case,
        machines=tuple(sorted(machines, key=lambda machine: machine.iteration_s)),
    )


def _machine(host: Host, records: Sequence[RunRecord], fastest_s: Mapping[RankOfHost, float]) -> MachineSpeed:
    ranks = range(records[0].case.world_size)
    return MachineSpeed(
        label=host[0] or "",
        rounds=len(records),
        iteration_s=mean_of([round_time_s(record) for record in records]).value,
        full=at_full_speed(records, fastest_s),
        fastest_probe_s=min((fastest_s[host, rank] for rank in ranks if (host, rank) in fastest_s), default=None),
    )


def _apart(times_s: Sequence[float]) -> float:
    return max(times_s) / min(times_s)
