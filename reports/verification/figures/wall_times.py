"""How long a process takes in all, and how much of it is no iteration at its steady pace. Pure."""

from reports.verification import formulas
from reports.verification.figures.starts import total_s
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase, counts


def start_up_s(stored: StoredCase) -> float | None:
    """Return what a process takes beyond its iterations at their steady pace, the median; None if nobody took it."""
    walls_s = {record["round"]: own_wall_s(record) for record in stored.completed}
    beyond = [
        wall_s - stored.case["iterations"] * stored.published_s[number]
        for number, wall_s in walls_s.items()
        if wall_s is not None
    ]
    return formulas.median_of_known(beyond)


def own_wall_s(record: Json) -> float | None:
    """Return the wall time of a round; of one in turns without those of others: its start and its other iterations."""
    wall_s: float | None = record["wall_time_s"]
    if wall_s is None or not record.get("turns") or not counts(record):
        return wall_s
    return min(wall_s, total_s(record) + sum(formulas.slowest_s(record)[1:]))
