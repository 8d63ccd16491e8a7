"""Intervals at 95 % of figures of independent runs: Student's t on the logarithms of the runs' values. Pure.

A run (a fresh process) has one value, such as its seconds per iteration. A figure is the geometric mean over runs, and
so the centre of its interval on a logarithmic scale. Times of processes are skewed, their logarithms hardly.

A ratio of two figures is unpaired, by Welch: the variances of the mean logarithms add up, and the degrees of freedom
follow from Welch and Satterthwaite. This is for runs of different machines or campaigns; configurations that ran
together are compared by ``suite.statistics.series_model``.

If a sample has fewer than three runs, there is no interval.
"""

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from suite.statistics.student_t import t_quantile

CONFIDENCE: Final = 0.95
MIN_ROUNDS_FOR_INTERVAL: Final = 3  # two processes show only their difference

type Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its interval at ``CONFIDENCE``, which is None for too few rounds."""

    value: float
    interval: Interval | None

    def mapped(self, function: Callable[[float], float]) -> "Estimate":
        """The same after a function that only rises or only falls."""
        bounds = self.interval and sorted(map(function, self.interval))
        return Estimate(value=function(self.value), interval=(bounds[0], bounds[1]) if bounds else None)


def product_of_means(samples: Sequence[Collection[float]], powers: Sequence[float]) -> Estimate:
    """The product of the samples' geometric means, each to its power. A sample has one value above 0 of each run.

    Raises ValueError for an empty sample and for a value that is not above 0.
    """
    logs = [[math.log(value) for value in sample] for sample in samples]
    if not all(logs):
        raise ValueError("a sample has no value")
    centre = math.fsum(power * statistics.fmean(sample) for power, sample in zip(powers, logs, strict=True))
    if min(map(len, logs)) < MIN_ROUNDS_FOR_INTERVAL:
        return Estimate(value=math.exp(centre), interval=None)
    parts = [
        (power**2 * statistics.variance(sample) / len(sample), len(sample) - 1)
        for power, sample in zip(powers, logs, strict=True)
    ]
    variance = math.fsum(part for part, _ in parts)
    half_width = 0.0
    if variance:
        freedom = variance**2 / math.fsum(part**2 / own for part, own in parts)
        half_width = t_quantile(CONFIDENCE, freedom) * math.sqrt(variance)
    interval = math.exp(centre - half_width), math.exp(centre + half_width)
    return Estimate(value=math.exp(centre), interval=interval)


def ratio_of(over: Collection[float], under: Collection[float]) -> Estimate:
    """The mean of ``over``, divided by the mean of ``under``."""
    return product_of_means([over, under], [1, -1])


def mean_of(values: Collection[float]) -> Estimate:
    """The geometric mean of values above 0, one of each run."""
    return product_of_means([values], [1])
