"""The quantile of Student's t distribution, for any number of degrees of freedom above 0. Pure, without dependencies.

The two-sided tail is a regularised incomplete beta function, computed by its continued fraction (Abramowitz and Stegun,
"Handbook of Mathematical Functions", 26.5.8 and 26.7.1). For positive t the tail falls and is convex, so Newton's
method approaches the quantile from below and never passes it.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_PRECISION: Final = 1e-13  # relative
_MOST_TERMS: Final = 10_000


@lru_cache(maxsize=4096)  # a page asks for the same few numbers of processes
def t_quantile(confidence: float, degrees_of_freedom: float) -> float:
    """The t that the absolute value of a t-distributed number exceeds with probability ``1 - confidence``.

    Raises ValueError if ``confidence`` is not between 0 and 1, or ``degrees_of_freedom`` is not above 0.
    """
    if not (0 < confidence < 1 and degrees_of_freedom > 0):
        raise ValueError(f"confidence {confidence} with {degrees_of_freedom} degrees of freedom has no quantile of t")
    t = NormalDist().inv_cdf((1 + confidence) / 2)  # smaller than any quantile of t
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
