"""The figures of a stored document, computed again from the samples of its ranks. Pure.

pytest-benchmark wrote them; its definitions are written here once more, so that a fault of its or of ours shows.
``hd15iqr`` is left out: its definition changed between versions that wrote results.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from suite.schema.record import CaseResult, RunRecord
from suite.statistics.reduce import ROUND_STATISTIC, counted_iterations, iteration_times_s


def _all_but_the_first(record: RunRecord) -> Sequence[int]:
    return range(1, len(iteration_times_s(record)))


# A document says what its numbers are; the rule of an older one stays the one that it is judged by. Each says which
# iterations of a round count; the figure is the median over them of the slowest rank's time.
RULES: Final[Mapping[str, Callable[[RunRecord], Sequence[int]]]] = {
    ROUND_STATISTIC: counted_iterations,
    "median over the steady iterations (all but the first) of the slowest rank's iteration_time_s, in seconds": (
        _all_but_the_first
    ),
}
# Not of the samples, or not by one definition.
NOT_RECOMPUTED: Final = frozenset({"hd15iqr", "iterations"})


def samples_s(result: CaseResult, rule: str) -> list[float]:
    """Seconds per iteration of every completed round. Raises KeyError for a rule that this labscale does not know."""
    return [_round_s(record, RULES[rule](record)) for record in result.completed]


def _round_s(record: RunRecord, counted: Sequence[int]) -> float:
    times_s = iteration_times_s(record)
    return statistics.median(times_s[iteration] for iteration in counted)


def stats(data: Sequence[float]) -> dict[str, Any]:
    """As pytest-benchmark defines them; ``data`` is not empty."""
    ordered = sorted(data)
    mean, total = statistics.mean(data), sum(data)
    stddev = statistics.stdev(data) if len(data) > 1 else 0
    q1, q3 = _quartiles(ordered)
    beyond_stddev = sum(not mean - stddev <= value <= mean + stddev for value in data)
    fence = 1.5 * (q3 - q1)
    beyond_fence = sum(not q1 - fence <= value <= q3 + fence for value in data)
    return {
        "data": list(data),
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": stddev,
        "rounds": len(data),
        "median": statistics.median(data),
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": beyond_fence,
        "stddev_outliers": beyond_stddev,
        "outliers": f"{beyond_stddev};{beyond_fence}",
        "ld15iqr": next(value for value in ordered if value >= q1 - fence),
        "ops": len(data) / total,
        "total": total,
    }


def _quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    """Even: medians of the halves. Odd: between two values, a quarter of the way from one that depends on the size."""
    count = len(ordered)
    if count == 1:
        return ordered[0], ordered[0]
    half = count // 2
    if count % 2 == 0:
        return statistics.median(ordered[:half]), statistics.median(ordered[half:])
    n, remainder = divmod(count, 4)

    def between(low: int, weight: float) -> float:
        return (1 - weight) * ordered[low] + weight * ordered[low + 1]

    if remainder == 1:
        return between(n - 1, 0.75), between(3 * n, 0.25)
    return between(n, 0.25), between(3 * n + 1, 0.75)
