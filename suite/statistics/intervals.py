"""Intervals at 95 % of figures of independent runs: Student's t on the logarithms of the runs' values. Pure.

A run (a fresh process) has one value, such as its seconds per iteration. A figure is the geometric mean over runs, and
so the centre of its interval on a logarithmic scale. Times of processes are skewed, their logarithms hardly.

A ratio of two figures is unpaired, by Welch: the variances of the mean logarithms add up, and the degrees of freedom
follow from Welch and Satterthwaite. This is for runs of different machines or campaigns; configurations that ran
together are compared by ``suite.statistics.series_model``.

Any other statistic of several figures goes the same way by the delta method: its change when one sample's mean
logarithm moves by that mean's standard error is what this sample adds to the standard error of the statistic.

If a sample has fewer than three runs, there is no interval.
"""

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.statistics.student_t import t_quantile

CONFIDENCE: Final = 0.95
MIN_ROUNDS_FOR_INTERVAL: Final = 3  # two processes show only their difference

type Interval = tuple[float, float]
type Rounds = Mapping[int, float]  # number of the round -> its value
type Statistic = Callable[[tuple[float, ...]], float]
type Scale = Literal["log", "linear"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its interval at ``CONFIDENCE``, which is None for too few rounds."""

    value: float
    interval: Interval | None

    def mapped(self, function: Callable[[float], float]) -> "Estimate":
        """The same after a function that only rises or only falls."""
        bounds = self.interval and sorted(map(function, self.interval))
        return Estimate(value=function(self.value), interval=(bounds[0], bounds[1]) if bounds else None)


def estimate(samples: Sequence[Collection[float]], statistic: Statistic, *, scale: Scale = "log") -> Estimate:
    """Estimate ``statistic`` of the samples' geometric means.

    ``samples``: one value above 0 of each run. ``scale``: ``log`` if the statistic is always above 0, so that its
    interval is symmetric in its logarithm; ``linear`` if it may be 0 or below. A statistic that is infinite, or becomes
    so within the standard error of a sample, has no interval.

    Raises ValueError for an empty sample and for a value that is not above 0.
    """
    logs = [[math.log(value) for value in sample] for sample in samples]
    if not all(logs):
        raise ValueError("a sample has no value")
    centres = list(map(statistics.fmean, logs))
    value = statistic(tuple(map(math.exp, centres)))
    if min(map(len, logs)) < MIN_ROUNDS_FOR_INTERVAL:
        return Estimate(value=value, interval=None)

    def moved(place: int, by: float) -> float:
        at = [centre + by * (index == place) for index, centre in enumerate(centres)]
        return _to_scale(statistic(tuple(map(math.exp, at))), scale)

    errors = list(map(_standard_error, logs))
    added = [(moved(place, error) - moved(place, -error)) / 2 for place, error in enumerate(errors)]
    if not all(map(math.isfinite, (*added, value))):
        return Estimate(value=value, interval=None)
    low, high = _interval(_to_scale(value, scale), added, list(map(len, logs)))
    return Estimate(value=value, interval=(math.exp(low), math.exp(high)) if scale == "log" else (low, high))


def ratio_of(over: Collection[float], under: Collection[float], *, factor: float = 1.0) -> Estimate:
    """``factor`` times the mean of ``over``, divided by the mean of ``under``."""
    return estimate([over, under], lambda means: factor * means[0] / means[1])


def mean_of(values: Collection[float]) -> Estimate:
    """The geometric mean of values above 0, one of each run."""
    return estimate([values], lambda means: means[0])


def _interval(centre: float, errors: Sequence[float], counts: Sequence[int]) -> Interval:
    """The t interval: ``errors`` are what samples of ``counts`` values add to the standard error of ``centre``."""
    variances = [error**2 for error in errors]
    total = math.fsum(variances)
    if total == 0:
        return centre, centre
    parts = math.fsum((variance / total) ** 2 / (count - 1) for variance, count in zip(variances, counts, strict=True))
    half_width = t_quantile(CONFIDENCE, 1 / parts) * math.sqrt(total)
    return centre - half_width, centre + half_width


def _standard_error(values: Collection[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def _to_scale(value: float, scale: Scale) -> float:
    return math.log(value) if scale == "log" else value
