"""Cases that differ in nothing but the number of ranks: their points, speed-ups and efficiencies. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from reports.analysis.curves import comparison_key, curve_label, is_emulated, was_skipped
from reports.analysis.rows import case_times, start_up_s
from suite.schema.record import Case, CaseResult, Scaling
from suite.statistics.intervals import Estimate, Rounds, mean_of
from suite.statistics.series_model import SetModel
from suite.statistics.twins import is_twin


@dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """One case of a group; without a completed round it has no times."""

    case: Case
    times_s: Rounds  # seconds per iteration
    start_up_s: float | None = None  # of a process, everything beyond its iterations at their later pace
    speedup: Estimate | None = None  # throughput over the baseline's; None if one of them has no completed round

    @property
    def case_id(self) -> str:
        return self.case.case_id

    @property
    def world_size(self) -> int:
        return self.case.world_size

    @property
    def frames_per_iteration(self) -> int:
        return self.case.frames_per_iteration

    @property
    def total_fps(self) -> float:
        """Raises ValueError without a completed round."""
        return self.frames_per_iteration / mean_of(self.times_s.values()).value


@dataclass(frozen=True, kw_only=True)
class ScalingGroup:
    """Cases that differ in nothing but the number of ranks, ordered by it; the first is the baseline."""

    series: str
    curve: str
    scaling: Scaling
    points: tuple[ScalingPoint, ...]
    model: SetModel = field(repr=False, compare=False)

    @property
    def baseline(self) -> ScalingPoint:
        return self.points[0]

    @property
    def measured(self) -> tuple[ScalingPoint, ...]:
        return tuple(point for point in self.points if point.times_s)


def scaling_groups(results: Sequence[CaseResult], model: SetModel | None = None) -> tuple[ScalingGroup, ...]:
    """Results that may be compared, by series and curve, without emulated nodes and what was not tried.

    A baseline that was not tried stays, without times: another is no baseline, as in ``reports.analysis.rows``. Curves
    are named as there too, after what differs between all cases. A/A twins among the results are no points. Where two
    topologies have the same number of ranks, the one with fewer nodes is taken: another network is another curve.

    ``model``: of their set; None if ``results`` is all of it.
    """
    model = model or SetModel.of(results)
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
        found.append(
            ScalingGroup(
                series=first.series,
                curve=curve_label(first, cases),
                scaling=first.scaling,
                points=tuple(_point(result, first, model) for result in by_world_size.values()),
                model=model,
            )
        )
    return tuple(sorted(found, key=lambda group: (group.series, group.curve)))


def _point(result: CaseResult, first: Case, model: SetModel) -> ScalingPoint:
    return ScalingPoint(
        case=result.case,
        times_s=case_times(result),
        start_up_s=start_up_s(result),
        speedup=model.speedup(result.case, first),
    )
