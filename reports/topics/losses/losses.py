"""What scaling loses, by the part of an iteration that takes longer than ideal scaling allows. Pure.

Ideal is the time of the fewest GPUs where the work grows with them (weak), and its share of it where the work stays the
same (strong). What is lost is 1 - efficiency, and every part has its own: its time beyond its ideal time, over the
iteration's. All-reduce and waiting are lost whole. A part that takes less than ideal gains. Inference is in the rest of
the rollout.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import as_shipped, curves
from reports.analysis.rows import case_times
from reports.analysis.time_split import PARTS, Part, part_shares
from reports.topics.losses.findings import BETWEEN_RANKS
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import Interval, Rounds, sum_of_means

MUCH: Final = 0.1


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
        """1 - efficiency."""
        return sum(self.parts.values())

    @property
    def is_sure(self) -> bool:
        """Whether enough rounds ran to say that something is lost."""
        return self.lost_interval is not None and min(self.lost_interval) > 0

    @property
    def largest_part(self) -> Part:
        return max(self.parts, key=self.parts.__getitem__)


def at_most_gpus(found: Sequence[Loss]) -> list[Loss]:
    """Of each curve the loss with the most GPUs."""
    return list({loss.baseline_id: loss for loss in sorted(found, key=lambda loss: loss.world_size)}.values())


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
    return Loss(
        case_id=other.case.case_id,
        baseline_id=baseline.case.case_id,
        world_size=other.case.world_size,
        parts=before.parts_of(after, row.scaling_efficiency),
        lost_interval=kept and (1 - kept[1], 1 - kept[0]),
        part_intervals=_part_intervals(before, after, row.scaling_efficiency),
    )


@dataclass(frozen=True, kw_only=True)
class _Rounds:
    """What the completed rounds of a case took, and for what; by number of the round."""

    times_s: Rounds
    shares: Mapping[int, Mapping[Part, float]]  # of the rounds that say it
    names: set[Part]

    @classmethod
    def of(cls, result: CaseResult) -> "_Rounds":
        split = {record.round: _split([record]) for record in result.completed}
        return cls(
            times_s=case_times(result),
            shares={number: shares for number, shares in split.items() if shares},
            names=set(_split(result.completed)),
        )

    @property
    def mean_log_s(self) -> float:
        return statistics.fmean(map(math.log, self.times_s.values()))

    def share(self, part: Part) -> float:
        """The mean over the rounds; 0 for a part that one rank does not have, as waiting."""
        return statistics.fmean(shares.get(part, 0.0) for shares in self.shares.values())

    def parts_of(self, after: "_Rounds", ideal: float) -> dict[Part, float]:
        """What ``after`` loses against these, by part; ``ideal``: the ideal time over that of ``after``."""
        return {part: after.share(part) - ideal * self.share(part) for part in PARTS.values() if part in after.names}


def _split(records: Sequence[RunRecord]) -> dict[Part, float]:
    """With inference in the rest of the rollout: a part more is a column more than a page has."""
    shares = part_shares(records)
    inference = shares.pop(PARTS["infer"], 0.0)
    rest = PARTS["other"]
    return {part: share + (inference if part == rest else 0.0) for part, share in shares.items()}


def _part_intervals(before: _Rounds, after: _Rounds, ideal: float) -> dict[Part, Interval]:
    """The loss of a part is linear in the shares of both, and nearly so in the logarithms of their times."""
    if any(len(case.shares) < len(case.times_s) for case in (before, after)):
        return {}
    found = {}
    for part in before.parts_of(after, ideal):
        was = before.share(part)
        summands = [
            [
                shares[part] + ideal * was * (math.log(after.times_s[number]) - after.mean_log_s)
                for number, shares in after.shares.items()
            ],
            [
                -ideal * (shares.get(part, 0.0) + was * (math.log(before.times_s[number]) - before.mean_log_s))
                for number, shares in before.shares.items()
            ],
        ]
        interval = sum_of_means(summands).interval
        if interval is not None:
            found[part] = interval
    return found
