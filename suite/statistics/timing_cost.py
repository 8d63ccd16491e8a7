"""What the marks within an iteration cost, read from any round: one of every four iterations has them. Pure.

Each marked iteration is compared with the mean of the two beside it, which have none, so a steady drift adds as much to
both sides, and processes and hosts, which differ by far more than marks cost, drop out. The figures of labscale come
from the iterations without marks (``suite.statistics.reduce``); this is what that avoids.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.schema.record import RunRecord
from suite.statistics.reduce import iteration_times_s, steady_part
from suite.statistics.stopping_rule import exact_median_interval

MIN_MARKED: Final = 8  # of fewer the median is one iteration's luck


@dataclass(frozen=True, kw_only=True)
class TimingCost:
    """Time with marks over time without, minus 1."""

    iterations: int  # marked ones
    median: float
    interval: tuple[float, float]  # of the median at 95 %


def timing_cost(records: Sequence[RunRecord]) -> TimingCost | None:
    """Of all steady iterations of all rounds together; None for fewer than ``MIN_MARKED`` between two without marks.

    Raises ValueError for a round without steady iterations, as ``suite.statistics.reduce.steady_part`` does.
    """
    costs = [cost for record in records for cost in iteration_costs(record)]
    if len(costs) < MIN_MARKED:
        return None
    interval = exact_median_interval(costs)
    if interval is None:
        raise AssertionError(f"{MIN_MARKED} values have an interval")
    return TimingCost(iterations=len(costs), median=statistics.median(costs), interval=interval)


def iteration_costs(record: RunRecord) -> list[float]:
    """Relative cost in each marked iteration between two without marks, by the slowest rank's time."""
    marks = record.ranks[0].samples.get("marked", ())
    if not marks:
        return []  # as rounds were before marks could be left out
    times_s, window = iteration_times_s(record), steady_part(record)
    return [
        times_s[index] / statistics.fmean((times_s[index - 1], times_s[index + 1])) - 1
        for index in range(window.start + 1, window.stop - 1)
        if [marks[index - 1], marks[index], marks[index + 1]] == [0, 1, 0]
    ]
