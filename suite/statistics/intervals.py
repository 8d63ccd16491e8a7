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
from functools import lru_cache
from typing import Final

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


def product_of(factors: Sequence[Estimate], powers: Sequence[float]) -> Estimate:
    """The product of independent estimates above 0, each to its power; with an interval if all of them have one.

    Their distances to the ends of their intervals, as logarithms, are added as squares (MOVER: Zou and Donner, 2008,
    https://doi.org/10.1002/sim.3095).
    """
    logs = [factor.mapped(math.log) for factor in factors]
    centre = math.fsum(power * log.value for power, log in zip(powers, logs, strict=True))
    distances = [
        sorted(power * (end - log.value) for end in log.interval)
        for power, log in zip(powers, logs, strict=True)
        if log.interval
    ]
    if len(distances) < len(factors):
        return Estimate(value=math.exp(centre), interval=None)
    below, above = (math.hypot(*ends) for ends in zip(*distances, strict=True))
    return Estimate(value=math.exp(centre), interval=(math.exp(centre - below), math.exp(centre + above)))


def mean_of(values: Collection[float]) -> Estimate:
    """The geometric mean of values above 0, one of each run."""
    return product_of_means([values], [1])


# ---- the quantile of Student's t distribution ----


# The two-sided tail is a regularised incomplete beta function, computed by its continued fraction (Abramowitz and
# Stegun, "Handbook of Mathematical Functions", 26.5.8 and 26.7.1). For positive t the tail falls and is convex, so
# Newton's method approaches the quantile from below and never passes it.
_PRECISION: Final = 1e-13  # relative
_MOST_TERMS: Final = 10_000


@lru_cache(maxsize=4096)  # a page asks for the same few numbers of processes
def t_quantile(confidence: float, degrees_of_freedom: float) -> float:
    """The t that the absolute value of a t-distributed number exceeds with probability ``1 - confidence``."""
    t = statistics.NormalDist().inv_cdf((1 + confidence) / 2)  # smaller than any quantile of t
    while True:
        step = (two_sided_tail(t, degrees_of_freedom) - (1 - confidence)) / (2 * _density(t, degrees_of_freedom))
        t += step
        if step <= _PRECISION * t:
            return t


def two_sided_tail(t: float, degrees_of_freedom: float) -> float:
    """The probability that the absolute value of a t-distributed number exceeds ``t``, which is above 0."""
    return _incomplete_beta(degrees_of_freedom / (degrees_of_freedom + t * t), degrees_of_freedom / 2, 0.5)


def _density(t: float, degrees_of_freedom: float) -> float:
    half = (degrees_of_freedom + 1) / 2
    log_scale = math.lgamma(half) - math.lgamma(degrees_of_freedom / 2) - math.log(degrees_of_freedom * math.pi) / 2
    return math.exp(log_scale - half * math.log1p(t * t / degrees_of_freedom))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function. Its continued fraction converges fast for x below (a+1)/(a+b+2)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + …)), by the modified method of Lentz."""
    value = numerator = 1.0
    denominator = 0.0
    for term in range(1, _MOST_TERMS):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / (1 + d * denominator)
        numerator = 1 + d / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION / 100:
            return value
    raise ArithmeticError(f"the incomplete beta function of {x}, {a}, {b} did not converge")
