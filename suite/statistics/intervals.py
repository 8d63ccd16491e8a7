"""Intervals at 95 %, all made by one function: Student's t on the logarithms of the processes' values. Pure.

A process (one round) has one value, such as its seconds per iteration. A figure is the median over processes. Its
interval is the t interval of the mean logarithm, exponentiated. Times of processes are skewed, their logarithms hardly.

A ratio of two figures is unpaired, by Welch: the variances of the mean logarithms add up, and the degrees of freedom
follow from Welch and Satterthwaite. Rounds that took turns share the state of their machine; this interval does not use
that, and is wider than it has to be. ``suite.statistics.series_model`` does.

Any other statistic of several figures goes the same way by the delta method: its change when one sample's mean
logarithm moves by that mean's standard error is what this sample adds to the standard error of the statistic.

An interval is extended to contain the figure. If a sample has fewer than three processes, there is no interval.
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
    """Estimate ``statistic`` of the samples' medians.

    ``samples``: one value above 0 of each process. ``scale``: ``log`` if the statistic is always above 0, so that its
    interval is symmetric in its logarithm; ``linear`` if it may be 0 or below. A statistic that is infinite, or becomes
    so within the standard error of a sample, has no interval.

    Raises ValueError for an empty sample and for a value that is not above 0.
    """
    value = statistic(tuple(map(statistics.median, samples)))
    if min(map(len, samples)) < MIN_ROUNDS_FOR_INTERVAL:
        return Estimate(value=value, interval=None)
    logs = [[math.log(each) for each in sample] for sample in samples]
    centres, errors = [statistics.fmean(each) for each in logs], [_standard_error(each) for each in logs]

    def moved(place: int, by: float) -> float:
        at = [centre + by * (index == place) for index, centre in enumerate(centres)]
        return _to_scale(statistic(tuple(map(math.exp, at))), scale)

    added = [(moved(place, error) - moved(place, -error)) / 2 for place, error in enumerate(errors)]
    centre = moved(0, 0.0)
    if not all(map(math.isfinite, (*added, centre, value))):
        return Estimate(value=value, interval=None)
    low, high = _interval(centre, added, list(map(len, samples)))
    if scale == "log":
        low, high = math.exp(low), math.exp(high)
    return Estimate(value=value, interval=_extended(low, high, value))


def ratio_of(over: Collection[float], under: Collection[float], *, factor: float = 1.0) -> Estimate:
    """``factor`` times the median of ``over``, divided by the median of ``under``."""
    return estimate([over, under], lambda medians: factor * medians[0] / medians[1])


def median_of(values: Collection[float]) -> Estimate:
    """The median of values above 0, one of each process."""
    return estimate([values], lambda medians: medians[0])


def median_interval(values: Collection[float]) -> Interval | None:
    """The interval of ``median_of``; None for too few values."""
    return median_of(values).interval if values else None


def sum_of_means(samples: Sequence[Collection[float]], value: float) -> Estimate:
    """Estimate a figure that is a sum, with one summand of each sample, such as a difference of rewards.

    The samples contain any numbers, also below 0, so nothing is taken by its logarithm. ``value`` is the figure.
    """
    if min(map(len, samples)) < MIN_ROUNDS_FOR_INTERVAL:
        return Estimate(value=value, interval=None)
    centre = math.fsum(map(statistics.fmean, samples))
    low, high = _interval(centre, list(map(_standard_error, samples)), list(map(len, samples)))
    return Estimate(value=value, interval=_extended(low, high, value))


def _interval(centre: float, errors: Sequence[float], counts: Sequence[int]) -> Interval:
    """The one t interval: ``errors`` are what samples of ``counts`` values add to the standard error of ``centre``."""
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


def _extended(low: float, high: float, value: float) -> Interval:
    return min(low, value), max(high, value)
