"""How certain the throughput of each number of GPUs is, and the efficiency on the most GPUs. Pure.

The terminal shows this after a campaign of one task and library. A range spans all rounds: with n rounds the true
median lies inside it with probability 1 - 2 ** (1 - n), for any distribution.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.records.worked import has_settled
from suite.schema.record import CaseResult
from suite.statistics.reduce import round_time_s

MIN_ROUNDS: Final = 3  # the range of one or two rounds says little

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of GPUs."""

    ranks: int
    rounds: int  # that completed
    settled: int  # rounds of these that settled
    fps: float  # environment steps a second of all ranks, median over the rounds
    fps_range: Range | None  # None for fewer than ``MIN_ROUNDS``


@dataclass(frozen=True, kw_only=True)
class Sureness:
    points: tuple[Point, ...]  # by number of GPUs
    efficiency: float | None  # on the most GPUs against the fewest; None for one number of them
    efficiency_range: Range | None

    @property
    def probability(self) -> float:
        """Probability that a range contains the true median, for the point with the fewest rounds."""
        return 1 - 2.0 ** (1 - min(point.rounds for point in self.points))

    @property
    def all_settled(self) -> bool:
        return all(point.settled == point.rounds for point in self.points)


def sureness(results: Sequence[CaseResult]) -> Sureness | None:
    """How certain a curve is. None if cases differ in more than their number of ranks, or none completed."""
    done = sorted((one for one in results if one.case.learns and one.completed), key=lambda one: one.case.world_size)
    curves = {(one.case.series, one.case.rl_library, one.case.stack, one.case.minibatch_rule) for one in done}
    sizes = [one.case.world_size for one in done]
    if len(curves) != 1 or len(set(sizes)) != len(sizes) or any(one.case.nnodes > 1 for one in done):
        return None
    value, low_high = _efficiency(done[0], done[-1]) if len(done) > 1 else (None, None)
    return Sureness(points=tuple(map(_point, done)), efficiency=value, efficiency_range=low_high)


def _point(result: CaseResult) -> Point:
    rates = [result.case.frames_per_iteration / round_time_s(record) for record in result.completed]
    median_s = statistics.median(round_time_s(record) for record in result.completed)
    return Point(
        ranks=result.case.world_size,
        rounds=len(rates),
        settled=sum(map(has_settled, result.completed)),
        fps=result.case.frames_per_iteration / median_s,
        fps_range=(min(rates), max(rates)) if len(rates) >= MIN_ROUNDS else None,
    )


def _efficiency(fewest: CaseResult, most: CaseResult) -> tuple[float, Range | None]:
    """Throughput per rank relative to the case with the fewest ranks, and its range over the rounds of both cases."""
    work = most.case.frames_per_iteration / fewest.case.frames_per_iteration
    ideal = most.case.world_size / fewest.case.world_size
    one_s, many_s = ({record.round: round_time_s(record) for record in each.completed} for each in (fewest, most))
    value = work * statistics.median(one_s.values()) / statistics.median(many_s.values()) / ideal
    pairs = [work * one_s[number] / many_s[number] / ideal for number in one_s.keys() & many_s.keys()]
    # The median of ratios is not the ratio of medians, which may lie a little outside.
    return value, (min(*pairs, value), max(*pairs, value)) if len(pairs) >= MIN_ROUNDS else None
