"""How long the slowest of many ranks takes, from how far measured ranks lay apart. Pure.

A rank's own time is its iteration without all-reduce, in which the others wait for it. Its lag is that time over the
median rank's of the same iteration, minus 1, so what slows all ranks at once is no lag. Lags are taken as independent
draws from what was measured, once an iteration. More ranks then lag more, in one of three ways:

- low: no more than those that were measured,
- expected: the mean of the largest of n draws, which is never worse than the worst lag seen,
- high: lags beyond the ninth decile have an exponential tail, so each doubling adds as much as the one before.

What this leaves out: a rank that is always slower would be drawn as if it were so only now and then, and ranks that
wait for each other at every optimiser step lose more than by one wait an iteration.
"""

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.collectives import Bound
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.reduce import steady_part

MIN_LAGS: Final = 16  # fewer say nothing of the worst
TAIL: Final = 0.9
EULER_GAMMA: Final = 0.5772156649015329


@dataclass(frozen=True, kw_only=True)
class Lags:
    """Of all rounds of one case; ``ordered`` from the least to the worst, relative to the median rank."""

    world_size: int
    ordered: tuple[float, ...]
    slowest: float  # the mean over iterations of the largest lag, as measured

    def largest_of(self, draws: int, bound: Bound = "expected") -> float:
        """Lag of the slowest of ``draws`` ranks."""
        expected = expected_largest(self.ordered, draws)
        if bound == "low":
            return expected_largest(self.ordered, min(draws, self.world_size))
        return max(expected, tail_largest(self.ordered, draws)) if bound == "high" else expected


def lags_of(result: CaseResult) -> Lags | None:
    """None where fewer than ``MIN_LAGS`` were measured: of one rank, or in rounds that are too short."""
    iterations = [lags for record in result.completed for lags in _by_iteration(record)]
    ordered = tuple(sorted(lag for lags in iterations for lag in lags))
    if len(ordered) < MIN_LAGS:
        return None
    return Lags(
        world_size=result.case.world_size, ordered=ordered, slowest=statistics.fmean(max(lags) for lags in iterations)
    )


def expected_largest(ordered: Sequence[float], draws: int) -> float:
    """Mean of the largest of ``draws`` from ``ordered`` with replacement; no random numbers are needed.

    The k-th of m values is the largest with probability (k/m)^n - ((k-1)/m)^n.
    """
    count = len(ordered)
    weights = [(rank / count) ** draws for rank in range(count + 1)]
    return math.fsum(value * (weights[rank + 1] - weights[rank]) for rank, value in enumerate(ordered))


def tail_largest(ordered: Sequence[float], draws: int) -> float:
    """The same where values beyond the decile ``TAIL`` are exponential: u + mean excess (ln(n p) + gamma).

    p is the share beyond u. For so few draws that none is expected there it is u.
    """
    threshold = ordered[min(len(ordered) - 1, int(TAIL * len(ordered)))]
    beyond = ordered[bisect.bisect_right(ordered, threshold) :]
    expected = draws * len(beyond) / len(ordered)
    if expected < 1:
        return threshold
    excess = statistics.fmean(value - threshold for value in beyond)
    return threshold + excess * (math.log(expected) + EULER_GAMMA)


def _by_iteration(record: RunRecord) -> list[list[float]]:
    """Lags of all ranks in every steady iteration in which all-reduce was timed on each of them."""
    if len(record.ranks) < 2:  # noqa: PLR2004 - one rank has nothing to lag behind
        return []
    steady = steady_part(record)
    own = [
        [
            None if whole is None or waited is None else whole - waited
            for whole, waited in zip(
                steady.of(rank.samples.get("iteration_time_s", ())),
                steady.of(rank.samples.get("all_reduce_time_s", ())),
                strict=False,
            )
        ]
        for rank in record.ranks
    ]
    columns = [[time_s for time_s in times if time_s is not None] for times in zip(*own, strict=False)]
    return [_against_median(times) for times in columns if len(times) == len(record.ranks)]


def _against_median(times_s: Sequence[float]) -> list[float]:
    median_s = statistics.median(times_s)
    return [time_s / median_s - 1 for time_s in times_s]
