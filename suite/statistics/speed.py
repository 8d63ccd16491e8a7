"""Decide what a ratio of throughputs says, and an efficiency. Pure."""

from typing import Final, Literal

from suite.statistics.intervals import Estimate

# At most a fifth of the GPUs paid for may be lost. A convention, stated so that everyone can judge by another.
SCALES_EFFICIENCY: Final = 0.80

# The slope below which a core hardly limits a training: a core twice as fast makes it at most 1.15 times as fast.
HARDLY_SLOPE: Final = 0.2

type Side = Literal["at least 80 %", "below 80 %", "within noise", "too few runs"]
type Speed = Literal["faster", "slower", "within noise", "too few runs"]


def speed_of(throughput_ratio: Estimate | None) -> Speed:
    """``within noise`` if the interval of the ratio contains 1; ``too few runs`` without an interval."""
    if throughput_ratio is None or throughput_ratio.interval is None:
        return "too few runs"
    low, high = throughput_ratio.interval
    return "faster" if low > 1 else "slower" if high < 1 else "within noise"


def side_of(efficiency: Estimate) -> Side:
    """Return the side of ``SCALES_EFFICIENCY`` on which the whole interval lies."""
    if efficiency.interval is None:
        return "too few runs"
    low, high = efficiency.interval
    return "at least 80 %" if low >= SCALES_EFFICIENCY else "below 80 %" if high < SCALES_EFFICIENCY else "within noise"


def twice_the_core(slope: float) -> str:
    """How many times as fast a core twice as fast makes a training at most. ``slope``: of its time over the core's."""
    return f"{2 ** min(1.0, slope):.1f}"


def core_sentence(low: float, high: float, times: str) -> str:
    """Say how far a training waits for its CPU core. ``low``, ``high``: of the slope; ``times``: on twice the core."""
    if high < HARDLY_SLOPE:
        return "The CPU core hardly limits this training."
    if low <= 0:
        return "How far this training goes with its CPU core is within noise."
    return f"This training waits for one CPU core: a core twice as fast would make it up to {times} times as fast."
