"""Speed-up from mean times over a fixed window; the repeat of the baseline is more runs of the baseline. Pure.

The work of an iteration changes while a policy learns, so all runs are compared over the same iterations: the last 80 %
of each. The ratio is that of geometric means over runs, with Welch's interval on their logarithms.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Final

from suite.schema.record import CaseResult, RunRecord
from suite.statistics.aa_noise import SUFFIX
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, sum_of_means
from suite.statistics.reduce import iteration_times_s

SHARE: Final = 0.8  # of the iterations of a run, its last


def fixed_window_speedup(base: CaseResult, other: CaseResult, twins: Sequence[CaseResult]) -> Estimate | None:
    """Return throughput of ``other`` over that of ``base``; None where either has too few runs for an interval."""
    repeats = [record for twin in twins if twin.case.case_id == base.case.case_id + SUFFIX for record in twin.completed]
    logs = [math.log(mean_time_s(record)) for record in (*base.completed, *repeats)]
    other_logs = [math.log(mean_time_s(record)) for record in other.completed]
    if other is base or min(len(logs), len(other_logs)) < MIN_ROUNDS_FOR_INTERVAL:
        return None
    work = other.case.frames_per_iteration / base.case.frames_per_iteration
    change = statistics.fmean(logs) - statistics.fmean(other_logs)
    found = sum_of_means([logs, [-value for value in other_logs]], change)
    return found.mapped(lambda value: work * math.exp(value))


def mean_time_s(record: RunRecord) -> float:
    """Mean time of the slowest rank over the window [s], without marked iterations where others exist."""
    times_s = iteration_times_s(record)
    window = range(round((1 - SHARE) * len(times_s)), len(times_s))
    marks = record.ranks[0].samples.get("marked") or [0] * len(times_s)
    return statistics.fmean([times_s[place] for place in window if not marks[place]] or times_s[window.start :])
