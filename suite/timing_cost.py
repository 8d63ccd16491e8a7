"""What the timer's own marks cost, from rounds in which iterations with and without them take turns. Pure.

In every four iterations of a case with the workload ``timing_cost`` the first and last have marks and the two between
have none, so a steady drift adds as much to both sides. Each such block is compared within itself; processes and hosts
differ by far more than marks cost, and drop out.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.reduce import iteration_times_s, steady_part
from suite.repeats import median_interval
from suite.schema import RunRecord

BLOCK: Final = 4
COLUMN: Final = "control.marks"


@dataclass(frozen=True, kw_only=True)
class TimingCost:
    """Time with marks over time without, minus 1: relative to an iteration without."""

    blocks: int
    median: float
    interval: tuple[float, float] | None  # of the median at 95 %; None for too few blocks


def timing_cost(records: Sequence[RunRecord]) -> TimingCost | None:
    """Of all steady blocks of all rounds together; None when there is no block.

    Raises ValueError for a round without steady iterations, as ``suite.reduce.steady_part`` does.
    """
    costs = [cost for record in records for cost in block_costs(record)]
    if not costs:
        return None
    return TimingCost(blocks=len(costs), median=statistics.median(costs), interval=median_interval(costs))


def block_costs(record: RunRecord) -> list[float]:
    """Relative cost in each whole block of the steady part, by the slowest rank's time; none for any other workload."""
    marked = record.ranks[0].samples.get(COLUMN)
    if marked is None:
        return []
    times_s, window = iteration_times_s(record), steady_part(record)
    first = -(-window.start // BLOCK) * BLOCK
    costs = []
    for start in range(first, window.stop - BLOCK + 1, BLOCK):
        block = range(start, start + BLOCK)
        with_marks_s = sum(times_s[index] for index in block if marked[index])
        without_s = sum(times_s[index] for index in block if not marked[index])
        costs.append(with_marks_s / without_s - 1)
    return costs
