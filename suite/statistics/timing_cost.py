"""Measure what detailed timing (marks within an iteration) costs; one of four iterations has marks. Pure.

Each marked iteration is compared with the mean of its two neighbours without marks. So a steady drift cancels, and so
do differences between processes and hosts, which are far larger than this cost. labscale's figures come from the
iterations without marks (``suite.statistics.reduce``) and do not contain it.
"""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import iteration_times_s, starts_of_turns, window

MIN_MARKED: Final = 8  # with fewer, the median depends on single iterations


def timing_cost(records: Sequence[RunRecord]) -> tuple[Estimate, int] | None:
    """Time with marks relative to time without, minus 1, over the windows of all rounds; and the marked iterations.

    None for fewer than ``MIN_MARKED`` usable ones. A round has the median of its own. Raises ValueError as
    ``suite.statistics.reduce.window`` does.
    """
    costs = [own for record in records if (own := iteration_costs(record))]
    iterations = sum(map(len, costs))
    if iterations < MIN_MARKED:
        return None
    return mean_of([1 + statistics.median(own) for own in costs]).mapped(lambda ratio: ratio - 1), iterations


def iteration_costs(record: RunRecord) -> list[float]:
    """Relative cost of each marked iteration between two without marks, from the slowest rank's times."""
    marks = record.ranks[0].samples.get("marked", ())
    if not marks:
        return []  # an old round, in which every iteration had marks
    times_s, counted = iteration_times_s(record), window(record)
    begins_turn = set(starts_of_turns(record))
    return [
        times_s[index] / statistics.fmean((times_s[index - 1], times_s[index + 1])) - 1
        for index in range(counted.start + 1, counted.stop - 1)
        if [marks[index - 1], marks[index], marks[index + 1]] == [0, 1, 0]
        and not begins_turn.intersection(range(index - 1, index + 2))
    ]
