"""What scaling loses, by the part of an iteration that takes longer than ideal scaling allows. Pure.

Ideal is the time of the fewest GPUs where the work grows with them (weak), and its share of it where the work stays the
same (strong). What is lost is 1 - efficiency, and every part has its own: its time beyond its ideal time, over the
iteration's. All-reduce and waiting are lost whole. A part that takes less than ideal gains. Inference is in the rest of
the rollout.
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.analysis import CaseTimes, case_times
from reports.campaign import Campaign
from reports.findings import BETWEEN_RANKS, as_shipped, curves
from reports.inside import PARTS, Part, part_shares
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import Interval, percentile_interval, resampled_rounds


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Of a case against the fewest GPUs of its curve; shares of its iteration time."""

    case_id: str
    baseline_id: str
    world_size: int
    parts: Mapping[Part, float]  # below 0 for a part that gained
    lost_interval: Interval | None  # 95 %, of all parts together; None where too few rounds are there
    part_intervals: Mapping[Part, Interval]  # likewise of each part; empty where too few rounds say what they go to

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
    before, after = (_Rounds.of(result) for result in (baseline, other))
    between = set(BETWEEN_RANKS) if baseline.case.world_size == 1 else set()
    if not set(BETWEEN_RANKS) <= after.names or before.names != after.names - between:
        return None
    (row,) = (row for row in series.rows if row.case_id == other.case.case_id)
    if row.scaling_efficiency is None:
        return None  # the baseline did not complete, and is replaced by no other
    kept = row.scaling_efficiency_interval
    work = baseline.case.world_size / other.case.world_size if other.case.scaling == "strong" else 1.0
    return Loss(
        case_id=other.case.case_id,
        baseline_id=baseline.case.case_id,
        world_size=other.case.world_size,
        parts=_parts(before, after, work),
        lost_interval=kept and (1 - kept[1], 1 - kept[0]),
        part_intervals=_part_intervals(before, after, work),
    )


@dataclass(frozen=True, kw_only=True)
class _Rounds:
    """What the completed rounds of a case took, and for what; by number of the round."""

    times: CaseTimes
    shares: Mapping[int, Mapping[Part, float]]  # of the rounds that say it
    names: set[Part]

    @classmethod
    def of(cls, result: CaseResult) -> "_Rounds":
        split = {record.round: _split([record]) for record in result.completed}
        return cls(
            times=case_times(result),
            shares={number: shares for number, shares in split.items() if shares},
            names=set(_split(result.completed)),
        )

    def only(self, numbers: Sequence[int]) -> tuple[float, dict[Part, float]]:
        """Median time of the rounds of these numbers, and the mean share of each part."""
        time_s = statistics.median(self.times.times_s[number] for number in numbers)
        split = [self.shares[number] for number in numbers if number in self.shares]
        return time_s, {part: statistics.fmean(shares[part] for shares in split) for part in self.names}


def _split(records: Sequence[RunRecord]) -> dict[Part, float]:
    """With inference in the rest of the rollout: a part more is a column more than a page has."""
    shares = part_shares(records)
    inference = shares.pop(PARTS["infer"], 0.0)
    rest = PARTS["other"]
    return {part: share + (inference if part == rest else 0.0) for part, share in shares.items()}


def _parts(
    before: _Rounds, after: _Rounds, work: float, drawn: Sequence[Sequence[int]] | None = None
) -> dict[Part, float]:
    """``drawn``: the rounds of both that count, by default all; ``work``: of an iteration of a rank, ideally."""
    of_before, of_after = drawn or (sorted(before.times.times_s), sorted(after.times.times_s))
    before_s, before_shares = before.only(of_before)
    after_s, after_shares = after.only(of_after)
    ideal = work * before_s / after_s
    return {
        part: after_shares[part] - ideal * before_shares.get(part, 0.0)
        for part in PARTS.values()
        if part in after_shares
    }


def _part_intervals(before: _Rounds, after: _Rounds, work: float) -> dict[Part, Interval]:
    if any(len(case.shares) < len(case.times.times_s) for case in (before, after)):
        return {}
    draws = Counter(resampled_rounds([before.times, after.times]) or ())  # a few rounds are drawn in few ways only
    resampled: list[dict[Part, float]] = []
    for drawn, times in draws.items():
        resampled += [_parts(before, after, work, drawn)] * times
    return {part: percentile_interval([parts[part] for parts in resampled]) for part in (resampled or [{}])[0]}
