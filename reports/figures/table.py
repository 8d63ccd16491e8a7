"""``figures.csv`` of a version: a row for every number that is published, with the declaration that it follows from.

``python -m reports.figures.table VERSION`` writes it anew. ``verify`` computes each row again by its declaration.
"""

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from reports.data.frames import iterations, runs
from reports.figures.compare import Runs
from reports.figures.declarations import declarations
from reports.figures.kinds import Figure, evaluated
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.version import Version, read_version
from suite.files.input_file import read_input
from suite.options.command_line import Parser, exit_code_of, results_path

FILE: Final = "figures.csv"
COLUMNS: Final[Mapping[str, type[pl.DataType]]] = {
    "id": pl.String,
    "kind": pl.String,  # a formula of ``reports.figures.kinds``
    "column": pl.String,  # of the table of runs
    "of": pl.String,  # which runs: column=value, joined by &
    "over": pl.String,  # which runs it is divided by
    "unit": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,  # ends of the 95 % interval
    "high": pl.Float64,
    "runs": pl.Int64,
    "status": pl.String,  # of a ratio: clear, within noise, too few runs
}
DIGITS: Final = 9  # that are stored; the last of a double differ between processors


def figures(version: Version) -> pl.DataFrame:
    """Return a row for each figure that has a value, in the order of their ids. Columns: ``COLUMNS``."""
    own = Runs(runs(version), iterations(version))
    rows = [_row(figure) for declared in declarations(own) if (figure := evaluated(declared, own)).value is not None]
    return pl.DataFrame(rows, COLUMNS, orient="row").sort("id")


def _row(figure: Figure) -> tuple[Any, ...]:
    declared = figure.declaration
    selections = [
        "&".join(f"{name}={value}" for name, value in (each or {}).items()) for each in (declared.of, declared.over)
    ]
    numbers = [
        None if number is None else float(f"{number:.{DIGITS}g}") for number in (figure.value, figure.low, figure.high)
    ]
    return (
        declared.id,
        declared.kind,
        declared.column,
        *selections,
        declared.unit,
        *numbers,
        figure.runs,
        figure.status,
    )


def text(version: Version) -> str:
    """Return the file."""
    return figures(version).write_csv()


def write(folder: Path) -> Path:
    """Write the file of the version in ``folder``, and return its path. Raises ReportError, StoreError, OSError."""
    path = folder / FILE
    path.write_text(text(read_version(folder, name=folder.name)), encoding="utf-8")
    return path


def read_figures(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the stored file by their ids; numbers as numbers, None for an empty field."""
    frame = pl.read_csv(io.BytesIO(read_input(folder / FILE)), schema=dict(COLUMNS))
    return {row["id"]: row for row in frame.iter_rows(named=True)}


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="python -m reports.figures.table", description=f"Write {FILE} of a version.")
    parser.add_argument("version", type=results_path, metavar="VERSION")
    folder = parser.read(arguments).version
    with told_when_unreadable(folder), told_when_unwritable(folder):
        print(write(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
