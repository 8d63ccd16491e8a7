"""``figures.csv`` of a version, which has every published number.

The report's own declarations say which figures there are and of which runs: ``of``, and ``over`` for what it is divided
by. Each row has to be declared, each declared figure that has a value is a row, and each value is computed again from
raw samples by ``kinds``.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from reports.figures.tables import declared_of
from reports.verification.finding import Place
from reports.verification.kinds import figure, product
from reports.verification.runs import Row, Run, rows_of
from suite.files.input_file import read_input
from suite.files.wording import counted

FILE: Final = "figures.csv"
COLUMNS: Final = ("id", "kind", "column", "of", "over", "unit", "value", "low", "high", "runs", "status")
TOLERANCE: Final = 1e-6  # relative: 9 digits are stored, and the last of a double differ between processors
NO_SHARE: Final = 1e-12  # what is left of a share that is 0 by differences
MEND_FIRST: Final = "Mend these records first, as the findings of each case file say; then verify again."
_WRITE_AGAIN: Final = "Write the file again with `python -m reports.figures.tables VERSION`."


def check_figures(place: Place, runs: Sequence[Run], rejected: Sequence[str]) -> int:
    """Check the file at ``place``; return of how many configurations figures were computed again."""
    if not place.path.is_file():
        return 0
    if rejected:
        got = f"not made: records are rejected in {', '.join(rejected)}"
        place.fault("the comparison of its figures with the samples", got, "made", MEND_FIRST)
        return 0
    every = rows_of([run for run in runs if run.is_measured])
    own = [row for row in every if not (row["is_repeat"] or row["is_alone"])]
    by_set, own_by_set = _by_set(every), {"": own, **_by_set(own)}
    select = cache(lambda text: _select(text, own_by_set))
    stored, known = read_figures(place), dict[str, Mapping[str, float | str | None]]()
    for declared in sorted(declared_of(every), key=lambda declared: declared["kind"] == "product"):
        name, kind, of, over = (declared[field] for field in ("id", "kind", "of", "over"))
        of_set = by_set.get(of.partition("&")[0], every)
        try:
            computed = known[name] = (
                product(of, known, has_unit=bool(declared["unit"]))
                if kind == "product"
                else figure(kind, declared["column"], select(of), select(over) if over else (), of_set)
            )
        except (ArithmeticError, LookupError, TypeError, ValueError):
            known[name] = {}
            place.fault(f"the figure {name}", f"a {kind} of {declared['column']}", "what can be computed")
            continue
        if name in stored:
            for field, value in {**declared, **computed}.items():
                if not _is_equal(text := stored[name][field], value):
                    wanted = "missing" if value in {None, ""} else str(value)
                    place.fault(f"{name}.{field}", text or "missing", wanted, _WRITE_AGAIN)
        elif computed["value"] is not None:
            place.fault(f"the figure {name}", "missing", f"there, {computed['value']}", _WRITE_AGAIN)
    for name in sorted(stored.keys() - known):
        place.fault(f"the figure {name}", "there", "none: nothing declares it", _WRITE_AGAIN)
    return len({(row["set"], row["configuration"]) for row in every if not row["is_alone"]})


def read_figures(place: Place) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the file by id, each field as its text; what is there twice is noted."""
    rows: dict[str, Mapping[str, str]] = {}
    lines = list(csv.reader(read_input(place.path).decode(errors="replace").splitlines()))
    if not lines or tuple(lines[0]) != COLUMNS:
        place.fault("the columns", ", ".join(lines[0] if lines else ()), ", ".join(COLUMNS), _WRITE_AGAIN)
    for number, fields in enumerate(lines[1:], start=2):
        if len(fields) != len(COLUMNS):
            place.fault(f"line {number}", counted(len(fields), "field"), f"{len(COLUMNS)}", _WRITE_AGAIN)
        elif fields[0] in rows:
            place.fault(f"the figure {fields[0]}", "there twice", "there once", _WRITE_AGAIN)
        else:
            rows[fields[0]] = dict(zip(COLUMNS, fields, strict=True))
    return rows


def _is_equal(text: str, expected: float | str | None) -> bool:
    if not text or expected is None or isinstance(expected, str):
        return text == (expected or "")
    try:
        return math.isclose(float(text), expected, rel_tol=TOLERANCE, abs_tol=NO_SHARE)
    except ValueError:
        return False


def _by_set(runs: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Return the runs by the selection that their set is."""
    groups = defaultdict[str, list[Row]](list)
    for run in runs:
        groups[f"set={run['set']}"].append(run)
    return groups


def _select(text: str, by_set: Mapping[str, Sequence[Row]]) -> Sequence[Any]:
    """Return the runs that a selection names, or the number that it has in place of runs."""
    selection = dict(part.partition("=")[::2] for part in text.split("&") if part)
    if "value" in selection:
        return [selection]
    rows = by_set.get(text.partition("&")[0], by_set[""])
    return [row for row in rows if all(str(row.get(name)) == value for name, value in selection.items())]
