"""``figures.csv`` of a version: every row computed again from raw samples, by the declaration that it states.

A declaration is a kind, a column, and which runs: ``of``, and ``over`` for what it is divided by.
"""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding, as_far_as_possible, not_compared
from reports.verification.kinds import Selected, figure
from reports.verification.regular_file import read_bytes
from reports.verification.runs import Row, rows_of_set
from reports.verification.samples.stored import StoredSet

FILE: Final = "figures.csv"
COLUMNS: Final = ("id", "kind", "column", "of", "over", "unit", "value", "low", "high", "runs", "status")
TOLERANCE: Final = 1e-6  # relative: 9 digits are stored, and the last of a double differ between processors
NO_SHARE: Final = 1e-12  # what is left of a share that is 0 by differences
_UNITS: Final = {  # end of a column -> unit, the first that fits; others are numbers, and so are comparisons
    "frames_per_s": "frames/s", "_us": "µs", "_s": "s", "_gb": "GB", "_w": "W", "_percent": "%",
    "joules_per_million_frames": "J", "bytes_per_frame": "B",
}  # fmt: skip
_OF_A_COLUMN: Final = ("mean", "average", "median", "least", "most", "sum")
_WRITE_AGAIN: Final = "Write the file again with `python -m reports.figures.tables VERSION`."


def check_figures(version: Path, sets: Sequence[StoredSet], *, root: Path) -> tuple[int, list[Finding]]:
    """Return of how many configurations the figures of a version were computed again, and what differs."""
    path = version / FILE
    if not path.is_file():
        return 0, []
    where = path.relative_to(root).as_posix()
    if rejected := not_compared(where, [name for one in sets for name in one.rejected]):
        return 0, rejected
    runs, alone = (
        [row for one in sets for row in rows_of_set(one.folder.name, [case.rounds for case in one.cases_of(is_copy)])]
        for is_copy in (False, True)
    )
    findings = list(as_far_as_possible(where, _check(where, read_figures(path), runs, alone)))
    return len({(row["set"], row["configuration"]) for row in runs}), findings


def read_figures(path: Path) -> list[Mapping[str, str]]:
    """Return the rows of the file, each field as its text. Raises ValueError for other columns."""
    lines = csv.DictReader(read_bytes(path).decode().splitlines())
    if tuple(lines.fieldnames or ()) != COLUMNS:
        raise ValueError(f"its columns are {', '.join(lines.fieldnames or ())}, expected {', '.join(COLUMNS)}")
    return list(lines)


def _check(
    where: str, rows: Sequence[Mapping[str, str]], runs: Sequence[Row], alone: Sequence[Row]
) -> Iterator[Finding]:
    by_set = {name: [run for run in runs if run["set"] == name] for name in {run["set"] for run in runs}}
    yield from _check_ids(where, rows, runs)
    for row in rows:
        of = row["of"].partition("&")[0].removeprefix("set=")
        try:
            yield from _check_row(where, row, by_set.get(of, runs), alone)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            got = f"not computable ({type(error).__name__}: {error})"
            yield _finding(where, f"the figure {row['id']}", got, "a figure of stored runs")


def _check_ids(where: str, rows: Sequence[Mapping[str, str]], runs: Sequence[Row]) -> Iterator[Finding]:
    """Check that each id is there once, and that no configuration with a completed run is left out."""
    for name, number in Counter(row["id"] for row in rows).items():
        if number > 1:
            yield _finding(where, f"the figure {name}", f"there {number} times", "there once")
    there = {(row["id"], row["kind"], row["column"]) for row in rows}
    own = (run for run in runs if not run["is_repeat"])
    for run in {(run["set"], run["configuration"]): run for run in own}.values():
        for column in ("iteration_s", "frames_per_s"):
            name = f"{run['set']}/{run['configuration']}/{column}"
            if run[column] is not None and (name, "mean", column) not in there:
                yield _finding(where, f"the figure {name}", "missing", f"there, the mean of {column}")


def _check_row(where: str, row: Mapping[str, str], runs: Sequence[Row], alone: Sequence[Row]) -> Iterator[Finding]:
    of, over = _selected(row["of"], runs), _selected(row["over"], runs) if row["over"] else []
    yield from _check_id(where, row, of, over)
    units = (unit for end, unit in _UNITS.items() if row["column"].endswith(end) and row["kind"] in _OF_A_COLUMN)
    if row["unit"] != (unit := next(units, "")):
        yield _finding(where, f"{row['id']}.unit", row["unit"] or "missing", unit or "missing")
    computed = figure(row["kind"], Selected(column=row["column"], of=of, over=over, every=runs, alone=alone))
    for name, expected in computed.items():
        if not _is_equal(row[name], expected):
            yield _finding(
                where, f"{row['id']}.{name}", row[name] or "missing", "missing" if expected is None else str(expected)
            )


def _check_id(where: str, row: Mapping[str, str], of: Sequence[Row], over: Sequence[Row]) -> Iterator[Finding]:
    """Check that an id says which runs ``of`` selects, which column they have, and in what a pair differs."""
    selection, what = _parsed(row["of"]), f"the figure {row['id']}"
    start = f"{selection.pop('start')}_" if "start" in selection else ""
    name = row["id"].removeprefix(f"{'/'.join(selection.values()) or 'total'}/")
    if name == row["id"] or "/" in name or not name.startswith(start):
        yield _finding(where, what, f"of {row['of'] or 'all runs'}", "of the runs that its id says")
    if not over and row["kind"] != "slope" and row["column"].partition("/")[0] not in name:
        yield _finding(where, what, f"of the column {row['column']}", "of the column that its id says")
    change = name.removeprefix("over_")
    if change != name and of[0][change] == over[0][change]:
        yield _finding(where, what, f"over {row['over']}", f"over a configuration with another {change}")


def _selected(text: str, runs: Sequence[Row]) -> list[Row]:
    """Return the runs that a selection names, without repeats. Raises LookupError if there is none."""
    selection = _parsed(text).items()
    selected = [run for run in runs if all(str(run[name]) == value for name, value in selection)]
    if not (own := [run for run in selected if not run["is_repeat"]]):
        raise LookupError(f"no completed run is {text}")
    return own


def _parsed(selection: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in selection.split("&")) if name}


def _is_equal(text: str, expected: float | str | None) -> bool:
    if not text or expected is None or isinstance(expected, str):
        return (text or None) == expected
    return math.isclose(float(text), expected, rel_tol=TOLERANCE, abs_tol=NO_SHARE)


def _finding(where: str, what: str, got: str, expected: str) -> Finding:
    return Finding(where=where, what=what, got=got, expected=expected, next_step=_WRITE_AGAIN)
