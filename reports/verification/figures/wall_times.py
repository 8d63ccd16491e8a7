"""How long a process takes in all, and how much of it is no iteration at its steady pace. Pure."""

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase


def start_up_s(stored: StoredCase) -> float | None:
    """Return what a process takes beyond its iterations at their steady pace, the median; None if nobody took it."""
    walls_s = {record["round"]: own_wall_s(record) for record in stored.completed}
    beyond = [
        wall_s - stored.case["iterations"] * stored.published_s[number]
        for number, wall_s in walls_s.items()
        if wall_s is not None
    ]
    return formulas.median(beyond) if beyond else None


def own_wall_s(record: Json) -> float | None:
    """Return the wall time of a completed round without the turns of others: to its first iteration's end, and on."""
    wall_s: float | None = record["wall_time_s"]
    if wall_s is None or not record.get("turns"):
        return wall_s
    times_s = formulas.slowest_s(record)
    return min(wall_s, max(_start_s(rank, times_s[0]) for rank in record["ranks"]) + sum(times_s[1:]))


def _start_s(rank: Json, first_iteration_s: float) -> float:
    """Return the time of a rank to the end of its first iteration, by its own clock if that says when it began."""
    samples, phases_s = rank["samples"], rank["phases_s"]
    start_s, time_s = samples.get("start_s", [None])[0], samples["iteration_time_s"][0]
    if start_s is None or "imports_torch" not in phases_s:
        return float(sum(phases_s.values()) + first_iteration_s)
    return float(phases_s["imports_torch"] + start_s + time_s)
