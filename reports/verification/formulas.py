"""The formulas behind the figures of every case, written here a second time, with the standard library alone. Pure."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from reports.verification.finding import Json

SHARE: Final = 0.8  # of the iterations, the last: the window
MIN_PROCESSES: Final = 3  # fewer have no interval
_TAIL: Final = 0.975

type Interval = tuple[float, float]

RULE: Final = (  # each document names the rule of its numbers
    "mean over the last four fifths of the iterations, without the marked ones where others exist, of the slowest "
    "rank's iteration_time_s, in seconds; of several trainings on one GPU their harmonic mean"
)


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


# --- one process: seconds per iteration ---


def slowest_s(record: Json) -> list[float]:
    """Return the time of every iteration: that of the slowest rank."""
    columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    return [max(times_s) for times_s in zip(*columns, strict=True)]


def window(record: Json) -> range:
    """Return the iterations that count."""
    count = len(slowest_s(record))
    return range(max(1, count - math.floor(SHARE * count)), count)


def counted_iterations(record: Json) -> list[int]:
    """Return the iterations whose mean is the figure of a process."""
    marks = record["ranks"][0]["samples"].get("marked")
    unmarked = [iteration for iteration in window(record) if marks is not None and marks[iteration] == 0]
    return unmarked or list(window(record))


def marked_iterations(record: Json) -> list[int]:
    """Return the iterations of the window whose parts were timed: all of them in old rounds, which marked every one."""
    marks = record["ranks"][0]["samples"].get("marked")
    if marks is None or all(marks[iteration] != 0 for iteration in window(record)):
        return list(window(record))
    return [iteration for iteration in window(record) if marks[iteration]]


def starts_of_turns(record: Json) -> set[int]:
    """Return the first iteration of each turn, before which another round ran; none of a round that ran alone."""
    turns = record["ranks"][0]["samples"].get("turn", [])
    return {index for index in range(1, len(turns)) if turns[index] != turns[index - 1]}


def seconds_per_iteration(record: Json) -> float:
    """Return the mean; of trainings that share a GPU the harmonic mean of their means."""
    counted, columns = counted_iterations(record), [slowest_s(record)]
    if record["case"]["trainings_per_gpu"] > 1:
        columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    return len(columns) / sum(len(counted) / math.fsum(times_s[place] for place in counted) for times_s in columns)


# --- several processes ---


@cache
def student_t(degrees: float) -> float:
    """Return t(0.975) for any number of degrees of freedom: where Student's distribution function is 0.975."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _distribution(middle, degrees) < _TAIL else (low, middle)
    return (low + high) / 2


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the geometric mean: Student's t on the logarithms."""
    if len(values) < MIN_PROCESSES:
        return None
    mean, variance = _logs(values)
    half = student_t(len(values) - 1) * math.sqrt(variance / len(values))
    return math.exp(mean - half), math.exp(mean + half)


def _logs(values: Sequence[float]) -> tuple[float, float]:
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    return mean, math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)


def _distribution(t: float, degrees: float) -> float:
    """Student's distribution function for t >= 0, by the incomplete beta function."""
    return 1 - _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised; the continued fraction of Lentz, as in any book on numerics."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny, c, d = 1e-300, 1.0, 0.0
    fraction = 1.0
    for step in range(400):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d if abs(1 + term * d) > tiny else tiny)
        c = 1 + term / c if abs(1 + term / c) > tiny else tiny
        fraction *= c * d
        if abs(1 - c * d) < 1e-15:  # noqa: PLR2004 - the precision of a float
            break
    return front * (fraction - 1) / a


# --- pytest-benchmark's figures of a document ---


def benchmark_stats(data: Sequence[float]) -> Mapping[str, Any]:
    """Return what pytest-benchmark stores of ``data``, which is not empty, but for its quartiles and outliers."""
    count, total = len(data), sum(data)
    mean = math.fsum(data) / count
    return {
        "data": list(data), "min": min(data), "max": max(data), "mean": mean, "rounds": count, "iterations": 1,
        "stddev": math.sqrt(math.fsum((value - mean) ** 2 for value in data) / (count - 1)) if count > 1 else 0,
        "median": median(data), "ops": count / total, "total": total,
    }  # fmt: skip
