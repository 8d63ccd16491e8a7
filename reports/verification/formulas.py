"""The formulas behind the figures of every case, written here a second time, with the standard library alone. Pure."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final

from reports.verification.finding import Json

MIN_STEADY: Final = 4
SETTLED_WITHIN: Final = 0.05  # how far the medians of the steady part's halves may lie apart
MIN_PROCESSES: Final = 3  # fewer have no interval and no verdict
NOISE_LEVEL: Final = 0.95
MAX_SPLITS: Final = 2000  # of two groups of rounds; if there are more, as many are drawn
_TAIL: Final = 0.975

type Interval = tuple[float, float]

# Each document names the rule of its numbers; those of the first days keep the first.
RULE: Final = (
    "median over the steady iterations that are not marked (over all where every one is) and do not begin a turn, of "
    "the slowest rank's iteration_time_s, in seconds; steady are the last iterations from the start that MSER finds in "
    "running medians of three (White 1997: least sum of squared deviations from the mean over the square of the "
    "length), which is after the first iteration, within the first half and leaves 4 iterations where there are so many"
)
FIRST_RULE: Final = (
    "median over the steady iterations (all but the first) of the slowest rank's iteration_time_s, in seconds"
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


def steady_start(times_s: Sequence[float]) -> int:
    """Return the first steady iteration by MSER, which sees running medians of three from the second iteration on."""
    return _steady_start(tuple(times_s))


@cache  # every column of a round needs it
def _steady_start(times_s: tuple[float, ...]) -> int:
    rest, count = list(times_s[1:]), len(times_s)
    smooth = [median(rest[max(0, i - 1) : i + 2]) if 0 < i < len(rest) - 1 else value for i, value in enumerate(rest)]
    if len(rest) > 2:  # noqa: PLR2004 - the last value has no running median of its own
        smooth[-1] = smooth[-2]
    best, start = math.inf, 1
    for candidate in range(1, _last_start(count) + 1):
        part = [value - smooth[candidate - 1] for value in smooth[candidate - 1 :]]
        mean = math.fsum(part) / len(part)
        error = math.fsum((value - mean) ** 2 for value in part) / len(part) ** 2
        if error < best * (1 - 1e-12):
            best, start = error, candidate
    return start


def _last_start(count: int) -> int:
    """Return the last place where a steady part may start."""
    return max(1, min(count // 2, count - MIN_STEADY))


def has_settled(record: Json) -> bool:
    """Return whether the later half of the steady part takes as long as the earlier, within ``SETTLED_WITHIN``.

    A steady part that starts at the last place that is searched is no answer: the warm-up may be longer.
    """
    times_s = slowest_s(record)
    start = steady_start(times_s)
    if start == _last_start(len(times_s)) > 1:
        return False
    steady = times_s[start:]
    half = len(steady) // 2
    if len(steady) < MIN_STEADY:
        return False
    return abs(median(steady[-half:]) / median(steady[:half]) - 1) <= SETTLED_WITHIN


def counted_iterations(record: Json, rule: str) -> list[int]:
    """Return the iterations whose median is the figure of a process."""
    times_s = slowest_s(record)
    if rule == FIRST_RULE:
        return list(range(1, len(times_s)))
    begins_turn = starts_of_turns(record)
    steady = [iteration for iteration in range(steady_start(times_s), len(times_s)) if iteration not in begins_turn]
    marks = record["ranks"][0]["samples"].get("marked")
    unmarked = [iteration for iteration in steady if marks is not None and marks[iteration] == 0]
    return unmarked or steady


def marked_iterations(record: Json) -> list[int]:
    """Return the steady iterations whose parts were timed: all of them in old rounds, which marked every one."""
    times_s, begins_turn = slowest_s(record), starts_of_turns(record)
    steady = [iteration for iteration in range(steady_start(times_s), len(times_s)) if iteration not in begins_turn]
    marks = record["ranks"][0]["samples"].get("marked")
    if marks is None or all(marks[iteration] != 0 for iteration in steady):
        return steady
    return [iteration for iteration in steady if marks[iteration]]


def starts_of_turns(record: Json) -> set[int]:
    """Return the first iteration of each turn, before which another round ran; none of a round that ran alone."""
    turns = record["ranks"][0]["samples"].get("turn", [])
    return {index for index in range(1, len(turns)) if turns[index] != turns[index - 1]}


def seconds_per_iteration(record: Json, rule: str) -> float:
    times_s = slowest_s(record)
    return median([times_s[iteration] for iteration in counted_iterations(record, rule)])


def published_s(record: Json) -> float:
    """Return seconds per iteration; of trainings that share a GPU the harmonic mean of their medians."""
    if record["case"]["trainings_per_gpu"] == 1:
        return seconds_per_iteration(record, RULE)
    counted = counted_iterations(record, RULE)
    columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    return len(columns) / sum(1 / median([times_s[iteration] for iteration in counted]) for times_s in columns)


# --- several processes: intervals, ratios, noise ---


@cache
def student_t(degrees: float) -> float:
    """Return t(0.975) for any number of degrees of freedom: where Student's distribution function is 0.975."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _distribution(middle, degrees) < _TAIL else (low, middle)
    return (low + high) / 2


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of a figure: Student's t on the logarithms, extended to contain the median."""
    if len(values) < MIN_PROCESSES:
        return None
    mean, variance = _logs(values)
    half = student_t(len(values) - 1) * math.sqrt(variance / len(values))
    return _containing(median(values), math.exp(mean - half), math.exp(mean + half))


def ratio(base: Sequence[float], other: Sequence[float], work: float) -> tuple[float, Interval | None]:
    """Return ``work`` times base over other, with Welch's interval on logarithms, extended to contain the ratio."""
    value = work * median(base) / median(other)
    if min(len(base), len(other)) < MIN_PROCESSES:
        return value, None
    (mean, variance), (other_mean, other_variance) = _logs(base), _logs(other)
    parts = [variance / len(base), other_variance / len(other)]
    total, middle = sum(parts), math.log(work) + mean - other_mean
    if total == 0:
        return value, _containing(value, math.exp(middle), math.exp(middle))
    degrees = total**2 / (parts[0] ** 2 / (len(base) - 1) + parts[1] ** 2 / (len(other) - 1))
    half = student_t(degrees) * math.sqrt(total)
    return value, _containing(value, math.exp(middle - half), math.exp(middle + half))


def apart(change: float) -> float:
    """Return the size of a relative change; doubling and halving have the same size, 1."""
    return max(1 + change, 1 / (1 + change)) - 1


def noise(times_s: Sequence[float], twin_s: Sequence[float]) -> float:
    """Return the distance of medians that 95 % of all splits of both cases' rounds into two groups do not exceed."""
    both = [*times_s, *twin_s]
    distances = sorted(apart(median(rest) / median(group) - 1) for group, rest in _splits(both, len(times_s)))
    ran = apart(median(twin_s) / median(times_s) - 1)
    return max(distances[math.ceil(NOISE_LEVEL * len(distances)) - 1], ran)


def _splits(values: Sequence[float], size: int) -> Iterator[tuple[list[float], list[float]]]:
    places = range(len(values))
    ways: Iterator[Sequence[int]] = combinations(places, size)
    if math.comb(len(values), size) > MAX_SPLITS:
        draw = random.Random(0)  # noqa: S311 - part of the definition: everybody draws the same
        ways = (draw.sample(places, size) for _ in range(MAX_SPLITS))
    for way in ways:
        yield [values[i] for i in places if i in way], [values[i] for i in places if i not in way]


def _logs(values: Sequence[float]) -> tuple[float, float]:
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    return mean, math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)


def _containing(value: float, low: float, high: float) -> Interval:
    return min(low, value), max(high, value)


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
    """Return the ``stats`` that pytest-benchmark stores of ``data``, which is not empty."""
    ordered, count, total = sorted(data), len(data), sum(data)
    mean = math.fsum(data) / count
    stddev = math.sqrt(math.fsum((value - mean) ** 2 for value in data) / (count - 1)) if count > 1 else 0
    q1, q3 = _quartiles(ordered)
    fence = 1.5 * (q3 - q1)
    beyond_stddev = sum(not mean - stddev <= value <= mean + stddev for value in data)
    beyond_fence = sum(not q1 - fence <= value <= q3 + fence for value in data)
    return {
        "data": list(data), "min": ordered[0], "max": ordered[-1], "mean": mean, "stddev": stddev, "rounds": count,
        "median": median(data), "iqr": q3 - q1, "q1": q1, "q3": q3, "iqr_outliers": beyond_fence,
        "stddev_outliers": beyond_stddev, "outliers": f"{beyond_stddev};{beyond_fence}",
        "ld15iqr": next(value for value in ordered if value >= q1 - fence), "ops": count / total, "total": total,
    }  # fmt: skip


def _quartiles(ordered: Sequence[float]) -> Interval:
    """Even: medians of the halves. Odd: between two values, a quarter of the way from one that depends on the size."""
    count = len(ordered)
    if count == 1:
        return ordered[0], ordered[0]
    half = count // 2
    if count % 2 == 0:
        return median(ordered[:half]), median(ordered[half:])
    n, remainder = divmod(count, 4)

    def between(low: int, weight: float) -> float:
        return (1 - weight) * ordered[low] + weight * ordered[low + 1]

    if remainder == 1:
        return between(n - 1, 0.75), between(3 * n, 0.25)
    return between(n, 0.25), between(3 * n + 1, 0.75)
