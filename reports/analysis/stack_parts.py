"""What an iteration goes to on each of two stacks, and what is learned on each. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from reports.analysis.analysed_set import Campaign
from reports.analysis.learned import learned
from reports.analysis.pairs_of_cases import CasePair, stacks_side_by_side
from reports.analysis.time_split import Part, parts_s
from suite.schema.record import Case, CaseResult
from suite.statistics.speed import Speed, speed_of


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two cases."""

    case: Case
    iteration_time_s: float | None  # median round; None where none completed
    parts_s: Mapping[Part, float]  # mean over ranks and rounds, scaled to the median round; empty where not measured
    gpu_memory_gb: float | None  # in use on the GPU with most, whatever uses it; median round
    reward: float | None  # median of the last iterations, median over rounds


@dataclass(frozen=True, kw_only=True)
class StackPair:
    """A case and the one that it is compared with."""

    ratio: CasePair
    base: Side
    case: Side

    @property
    def speed(self) -> Speed:
        return speed_of(self.ratio.over_base)

    @property
    def longer_s(self) -> Mapping[Part, float]:
        """How much longer each part takes, below 0 where it takes less; empty where a part of either is not known."""
        if not self.base.parts_s or self.base.parts_s.keys() != self.case.parts_s.keys():
            return {}
        return {part: time_s - self.base.parts_s[part] for part, time_s in self.case.parts_s.items()}


def stack_pairs(series: Campaign) -> tuple[StackPair, ...]:
    """Of one series, by number of ranks."""
    return tuple(
        StackPair(ratio=pair, base=_side(series, pair.base), case=_side(series, pair.case))
        for pair in stacks_side_by_side(series.results, series.model)
    )


def _side(series: Campaign, result: CaseResult) -> Side:
    (row,) = (row for row in series.rows if row.case_id == result.case.case_id)
    time_s = row.iteration_time_s
    seen = series.inside[result.case.case_id]
    rewarded = learned(result) if result.completed else None
    return Side(
        case=result.case,
        iteration_time_s=time_s,
        parts_s=parts_s(time_s, seen.shares),
        gpu_memory_gb=None if seen.gpu_memory_gb is None else seen.gpu_memory_gb.median,
        reward=None if rewarded is None else rewarded.reward,
    )
