"""Decide what a ratio of throughputs says. Pure."""

from typing import Literal

from suite.statistics.intervals import Estimate

type Speed = Literal["faster", "slower", "within noise", "too few runs"]


def speed_of(throughput_ratio: Estimate | None) -> Speed:
    """``within noise`` if the interval of the ratio contains 1; ``too few runs`` without an interval."""
    if throughput_ratio is None or throughput_ratio.interval is None:
        return "too few runs"
    low, high = throughput_ratio.interval
    return "faster" if low > 1 else "slower" if high < 1 else "within noise"
