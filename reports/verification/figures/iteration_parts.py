"""What the iterations of rounds go to: shares of a rank's time in its marked iterations, which add up to 1. Pure.

An all-reduce ends on all ranks together, so its own time is that of the rank that waited least; a rank waits the rest.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from reports.verification.finding import Json
from reports.verification.formulas import marked_iterations

PARTS: Final = ("simulate", "render", "environment", "infer", "other", "learn", "all_reduce", "waiting")

type Shares = dict[str, float]


def mean_shares(records: Sequence[Json]) -> Shares:
    """Return the mean over all ranks of these rounds, of each part that every one of them has."""
    found = [shares for record in records for shares in _of_ranks(record)]
    known = [part for part in PARTS if found and all(shares[part] is not None for shares in found)]
    return {part: sum(shares[part] or 0.0 for shares in found) / len(found) for part in known}


def _of_ranks(record: Json) -> Iterator[dict[str, float | None]]:
    """Yield the shares of each rank; nothing if a rank lacks a time that every training has."""
    marked = marked_iterations(record)
    ranks = [
        {
            name: _column(rank["samples"].get(f"{name}_time_s", []), marked)
            for name in ("iteration", "learning", "environment_step", "simulate", "render", "inference", "all_reduce")
        }
        for rank in record["ranks"]
    ]
    needed = ("iteration", "learning", "environment_step")
    if not marked or any(rank[name] is None for rank in ranks for name in needed):
        return
    reduced = [times_s for rank in ranks if (times_s := rank["all_reduce"])]
    has_all = len(reduced) == len(ranks)
    least_s = sum(map(min, zip(*reduced, strict=True))) if has_all else None
    for rank in ranks:
        known_s = {name: sum(times_s) for name, times_s in rank.items() if times_s is not None}
        yield _shares(known_s, least_s)


def _shares(known_s: dict[str, float], least_s: float | None) -> dict[str, float | None]:
    """Return the shares of one rank. The time of a part that was not measured stands in what holds that part."""
    iteration_s, reduced_s = known_s["iteration"], 0.0 if least_s is None else known_s["all_reduce"]
    steps_s = known_s["environment_step"]
    parts_s = {
        "simulate": known_s.get("simulate"),
        "render": known_s.get("render"),
        "environment": steps_s - known_s.get("simulate", 0.0) - known_s.get("render", 0.0),
        "infer": known_s.get("inference"),
        "other": iteration_s - steps_s - known_s.get("inference", 0.0) - known_s["learning"],
        "learn": known_s["learning"] - reduced_s,
        "all_reduce": least_s,
        "waiting": None if least_s is None else reduced_s - least_s,
    }
    return {part: None if part_s is None else part_s / iteration_s for part, part_s in parts_s.items()}


def _column(stored: Sequence[float | None], iterations: Sequence[int]) -> list[float] | None:
    """Return the times of these iterations; None if one of them has none."""
    known = [time_s for i in iterations if i < len(stored) and (time_s := stored[i]) is not None]
    return known if len(known) == len(iterations) else None
