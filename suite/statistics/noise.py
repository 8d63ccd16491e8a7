"""Decide whether a ratio of throughputs exceeds the measurement noise. Pure."""

from typing import Literal

from suite.statistics.aa_noise import is_within
from suite.statistics.intervals import Estimate, Interval

type Speed = Literal["faster", "slower", "within the noise", "unknown"]


def noise_band(noise: float | None) -> Interval:
    """The ratios within noise: either time may be longer by the noise."""
    return 1 / (1 + (noise or 0)), 1 + (noise or 0)


def against_noise(throughput_ratio: Estimate | None, noise: float | None) -> Speed:
    """Compare a ratio with the ``noise`` of repeat measurements (``suite.statistics.aa_noise``; None without any).

    A ratio is within the noise if it is no larger or if its interval contains 1; ``unknown`` with neither of them.
    """
    if throughput_ratio is None or (noise is None and throughput_ratio.interval is None):
        return "unknown"
    low, high = throughput_ratio.interval or (throughput_ratio.value, throughput_ratio.value)
    if is_within(throughput_ratio.value - 1, noise or 0.0) or low <= 1 <= high:
        return "within the noise"
    return "faster" if throughput_ratio.value > 1 else "slower"
