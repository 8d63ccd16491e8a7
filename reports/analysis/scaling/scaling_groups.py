"""Cases that differ in nothing but the number of ranks: their points, speed-ups and efficiencies. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reports.analysis.curves import comparison_key, curve_label, is_emulated, was_skipped
from reports.analysis.rows import case_times, rounds_settled, speedup_of, start_up_s
from suite.schema.record import CaseResult, Scaling
from suite.statistics.aa_noise import SUFFIX, is_twin
from suite.statistics.intervals import Estimate, Rounds


@dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """One case of a group; without a completed round it has no times."""

    world_size: int
    frames_per_iteration: int
    times_s: Rounds  # seconds per iteration
    settled: int = 0  # of its rounds
    start_up_s: float | None = None  # of a process, everything beyond its iterations at their steady pace
    case_id: str = ""

    @property
    def total_fps(self) -> float:
        """Raises StatisticsError without a completed round."""
        return self.frames_per_iteration / statistics.median(self.times_s.values())


@dataclass(frozen=True, kw_only=True)
class ScalingGroup:
    """Cases that differ in nothing but the number of ranks, ordered by it; the first is the baseline."""

    series: str
    curve: str
    scaling: Scaling
    points: tuple[ScalingPoint, ...]
    twin: ScalingPoint | None = None  # the baseline's in the A/A run, which is the same by another name

    @property
    def from_twin(self) -> "ScalingGroup | None":
        """The same with the twin as the baseline; None where it has no completed round."""
        if self.twin is None or not self.twin.times_s:
            return None
        return replace(self, points=(self.twin, *self.points[1:]), twin=None)

    @property
    def baseline(self) -> ScalingPoint:
        return self.points[0]

    @property
    def measured(self) -> tuple[ScalingPoint, ...]:
        return tuple(point for point in self.points if point.times_s)


def scaling_groups(results: Sequence[CaseResult]) -> tuple[ScalingGroup, ...]:
    """Results that may be compared, by series and curve, without emulated nodes and what was not tried.

    A baseline that was not tried stays, without times: another is no baseline, as in ``reports.analysis.rows``. Curves
    are named as there too, after what differs between all cases. A/A twins among the results are no points; the
    baseline's is kept apart. Where two topologies have the same number of ranks, the one with fewer nodes is taken:
    another network is another curve.
    """
    twins = {one.case.case_id: one for one in results if is_twin(one.case)}
    results = [one for one in results if not is_twin(one.case)]
    cases = [result.case for result in results]
    groups: dict[tuple[str | int, ...], dict[int, CaseResult]] = {}
    for result in sorted(results, key=lambda result: (result.case.world_size, result.case.nnodes, result.case.case_id)):
        of_curve = groups.setdefault(comparison_key(result.case), {})
        if not (is_emulated(result) or (of_curve and was_skipped(result))):
            of_curve.setdefault(result.case.world_size, result)
    found = []
    for by_world_size in groups.values():
        if all(map(was_skipped, by_world_size.values())):
            continue  # nothing of it was tried
        first = next(iter(by_world_size.values())).case
        twin = twins.get(first.case_id + SUFFIX)
        found.append(
            ScalingGroup(
                series=first.series,
                curve=curve_label(first, cases),
                scaling=first.scaling,
                points=tuple(map(_point, by_world_size.values())),
                twin=None if twin is None else _point(twin),
            )
        )
    return tuple(sorted(found, key=lambda group: (group.series, group.curve)))


def _point(result: CaseResult) -> ScalingPoint:
    return ScalingPoint(
        world_size=result.case.world_size,
        frames_per_iteration=result.case.frames_per_iteration,
        times_s=case_times(result).times_s,
        settled=rounds_settled(result),
        start_up_s=start_up_s(result),
        case_id=result.case.case_id,
    )


def point_speedup(group: ScalingGroup, point: ScalingPoint) -> Estimate:
    """Throughput of ``point`` over the baseline's. Raises StatisticsError when one has no completed round."""
    work = point.frames_per_iteration / group.baseline.frames_per_iteration
    return speedup_of(point.times_s, group.baseline.times_s, work=work)


def point_efficiency(group: ScalingGroup, point: ScalingPoint) -> Estimate:
    ideal = point.world_size / group.baseline.world_size
    return point_speedup(group, point).mapped(lambda speedup: speedup / ideal)
