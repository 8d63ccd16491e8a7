"""Times of all ranks of a round in chosen iterations, and the rates that follow from them. Pure."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase

STEP: Final = "environment_step_time_s"
# Frames per second of a part -> the column of its time.
RATES: Final = {"step_fps": STEP, "step_inference_fps": "collection_time_s"}


def complete_rows(record: Json, column: str, iterations: Sequence[int]) -> list[list[float]]:
    """Return the times of all ranks, of each of these iterations in which every rank has one."""
    columns = [rank["samples"].get(column, []) for rank in record["ranks"]]
    rows = [[times_s[iteration] for times_s in columns] for iteration in iterations if all(columns)]
    return [row for row in rows if None not in row]


def slowest_median_s(record: Json, column: str) -> float | None:
    """Return the median time of the slowest rank, of steps in marked iterations, which alone have one."""
    is_step = column == STEP
    known = formulas.marked_iterations(record) if is_step else formulas.counted_iterations(record, formulas.RULE)
    return formulas.median_of_known([max(row) for row in complete_rows(record, column, known)])


def rate(stored: StoredCase, column: str) -> float | None:
    """Return frames over the median time of the slowest rank, of the median round."""
    time_s = formulas.median_of_known([slowest_median_s(record, column) for record in stored.completed])
    return stored.frames / time_s if time_s else None
