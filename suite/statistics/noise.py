"""Whether a ratio of throughputs is more than what nothing differs by. Pure."""

from typing import Literal

from suite.statistics.aa_noise import is_within
from suite.statistics.intervals import Estimate, Interval

type Speed = Literal["faster", "slower", "within the noise", "unknown"]


def noise_band(noise: float | None) -> Interval:
    """Ratios that say nothing: a time that is longer by the noise, or another that is."""
    return 1 / (1 + (noise or 0)), 1 + (noise or 0)


def against_noise(throughput_ratio: Estimate | None, noise: float | None) -> Speed:
    """``noise``: of A/A pairs, see ``suite.statistics.aa_noise``; None where no such pair ran.

    A ratio within it, or whose interval holds 1, is noise; ``unknown`` where neither is there.
    """
    if throughput_ratio is None or (noise is None and throughput_ratio.interval is None):
        return "unknown"
    low, high = throughput_ratio.interval or (throughput_ratio.value, throughput_ratio.value)
    if is_within(throughput_ratio.value - 1, noise or 0.0) or low <= 1 <= high:
        return "within the noise"
    return "faster" if throughput_ratio.value > 1 else "slower"
