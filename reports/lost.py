"""What scaling loses, by the part of an iteration that takes longer than ideal scaling allows. Pure.

Ideal is the time of the fewest GPUs where the work grows with them (weak), and its share of it where the work stays the
same (strong). What is lost is 1 - efficiency, and every part has its own: its time beyond its ideal time, over the
iteration's. All-reduce and waiting are lost whole. A part that takes less than ideal gains.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from reports.campaign import Campaign
from reports.findings import BETWEEN_RANKS, as_shipped, curves
from reports.inside import PARTS, Part
from reports.resampling import Interval
from suite.reduce import round_time_s
from suite.schema import CaseResult


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Of a case against the fewest GPUs of its curve; shares of its iteration time."""

    case_id: str
    baseline_id: str
    world_size: int
    parts: Mapping[Part, float]  # below 0 for a part that gained
    lost_interval: Interval | None  # 95 %, of all parts together; None where too few rounds are there

    @property
    def lost(self) -> float:
        """1 - efficiency, of the median rounds."""
        return sum(self.parts.values())


def losses(campaign: Campaign) -> tuple[Loss, ...]:
    """Of the GPU cases of one node as upstream ships them, by curve, each but the first; none where parts differ."""
    found = []
    for series in (campaign.series(name) for name in campaign.series_names):
        for baseline, *others in curves(as_shipped(series.results) if series.kind == "scaling" else []):
            found += [loss for other in others if (loss := _loss(series, baseline, other)) is not None]
    return tuple(found)


def _loss(series: Campaign, baseline: CaseResult, other: CaseResult) -> Loss | None:
    before, after = (series.inside[result.case.case_id].shares for result in (baseline, other))
    between = set(BETWEEN_RANKS)
    if not between <= after.keys() or before.keys() != after.keys() - (
        between if baseline.case.world_size == 1 else set()
    ):
        return None
    (row,) = (row for row in series.rows if row.case_id == other.case.case_id)
    kept = row.scaling_efficiency_interval
    ideal = _time_s(baseline) / _time_s(other)
    if other.case.scaling == "strong":
        ideal *= baseline.case.world_size / other.case.world_size
    return Loss(
        case_id=other.case.case_id,
        baseline_id=baseline.case.case_id,
        world_size=other.case.world_size,
        parts={part: after[part] - ideal * before.get(part, 0.0) for part in PARTS.values() if part in after},
        lost_interval=kept and (1 - kept[1], 1 - kept[0]),
    )


def _time_s(result: CaseResult) -> float:
    return statistics.median(round_time_s(record) for record in result.completed)
