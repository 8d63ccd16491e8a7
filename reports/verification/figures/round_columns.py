"""Times of all ranks of a round in chosen iterations. Pure."""

from collections.abc import Sequence

from reports.verification.finding import Json


def complete_rows(record: Json, column: str, iterations: Sequence[int]) -> list[list[float]]:
    """Return the times of all ranks, of each of these iterations in which every rank has one."""
    columns = [rank["samples"].get(column, []) for rank in record["ranks"]]
    rows = [[times_s[iteration] for times_s in columns] for iteration in iterations if all(columns)]
    return [row for row in rows if None not in row]
