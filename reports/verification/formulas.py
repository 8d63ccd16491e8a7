"""The formulas behind the figures of every case, written here a second time, with the standard library alone. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reports.verification.finding import Json

SHARE: Final = 0.8  # of the iterations, the last: the window

RULE: Final = (  # each document names the rule of its numbers
    "mean over the last four fifths of the iterations, without the marked ones where others exist, of the slowest "
    "rank's iteration_time_s, in seconds; of several trainings on one GPU their harmonic mean"
)


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


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
