"""Starts of processes: what each took until its first iteration ended, and whether it was cold. Pure.

A start is cold if its case gives each round an empty kernel cache, or if kernels were compiled in it. Where the record
does not say how many, or where other rounds used the same cache, it is cold if it took over 1.75 times as long as the
shortest of its case, and a single one is of no known kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.verification.finding import Json
from reports.verification.samples.stored import StoredCase

COLD_FACTOR: Final = 1.75


@dataclass(frozen=True, kw_only=True)
class Start:
    """Of one round."""

    is_cold: bool | None  # None: not known
    total_s: float
    kernels: int | None


def starts_of(stored: StoredCase) -> list[Start]:
    """Return the start of every completed round."""
    totals_s = [total_s(record) for record in stored.completed]
    shortest_s = min(totals_s) if len(totals_s) > 1 else None
    return [_start(record, own_s, shortest_s) for record, own_s in zip(stored.completed, totals_s, strict=True)]


def warm_starts_s(starts: Sequence[Start]) -> list[float]:
    """Return the times of those that are known to be warm."""
    return [start.total_s for start in starts if start.is_cold is False]


def total_s(record: Json) -> float:
    """Return the longest of the ranks, each by its own clock, which begins after ``imports_torch``."""
    found: list[float] = []
    for rank in record["ranks"]:
        began_s, imported_s = rank["samples"].get("start_s", [None])[0], rank["phases_s"].get("imports_torch")
        if began_s is None or imported_s is None:  # an old record
            found.append(sum(rank["phases_s"].values()) + _first_iteration_s(record))
        else:
            found.append(imported_s + began_s + rank["samples"]["iteration_time_s"][0])
    return max(found)


def _start(record: Json, own_s: float, shortest_s: float | None) -> Start:
    kernels, empty = _kernels(record), record["case"]["kernel_cache"] == "empty"
    by_time = None if shortest_s is None else own_s > COLD_FACTOR * shortest_s
    return Start(
        is_cold=True if empty else by_time if kernels is None else kernels > 0,
        total_s=own_s,
        kernels=kernels,
    )


def _first_iteration_s(record: Json) -> float:
    return float(max(rank["samples"]["iteration_time_s"][0] for rank in record["ranks"]))


def _kernels(record: Json) -> int | None:
    """Return the kernels that the round compiled, on the node with most; None unless the cache was its own."""
    if record["turns"] is not None and record["case"]["kernel_cache"] != "empty":
        return None
    counts = [rank["kernels_compiled"] for rank in record["ranks"] if rank["local_rank"] == 0]
    return max(counts) if counts and None not in counts else None
