"""The tables of a version: runs, iterations, checks and figures, which is a row for every number that is published.

``figures.csv`` is in git, with the declaration that each row follows from, and ``verify`` computes each again.
``python -m reports.figures.tables VERSION`` writes it anew.
"""

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from reports.data.columns import IDENTITY, WHERE, WORK
from reports.data.frames import DTYPES, checks, iterations, runs
from reports.figures.compare import Runs
from reports.figures.declarations import declarations
from reports.figures.kinds import Declaration, Figure, evaluated
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.version import Version, read_version
from suite.errors import ReportError
from suite.files.input_file import read_input
from suite.options.command_line import Parser, exit_code_of, results_path

FILE: Final = "figures.csv"
COLUMNS: Final[Mapping[str, type[pl.DataType]]] = {
    "id": pl.String,
    "kind": pl.String,  # a formula of ``reports.figures.kinds``
    "column": pl.String,  # of the table of runs
    "of": pl.String,  # which runs: column=value, joined by &; of a product figure=power
    "over": pl.String,  # which runs it is divided by
    "unit": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,  # ends of the 95 % interval
    "high": pl.Float64,
    "runs": pl.Int64,
    "status": pl.String,  # of a ratio: clear, within noise, too few runs
}
DIGITS: Final = 9  # that are stored; the last of a double differ between processors


@cache
def tables(version: Version) -> Mapping[str, pl.DataFrame]:
    """Return all tables by name. ``figures`` are those that are stored with the version; else they are computed."""
    known, is_stored = runs_of(version), (version.folder / FILE).is_file()
    figures = _stored(version.folder) if is_stored else computed(version)
    return {"runs": known.every, "iterations": known.iterations, "checks": checks(version), "figures": figures}


def computed(version: Version) -> pl.DataFrame:
    """Return a row for each figure that has a value, in the order of their ids."""
    known = runs_of(version)
    rows = [_row(figure) for figure in evaluated(declarations(known), known) if figure.value is not None]
    return pl.DataFrame(rows, COLUMNS, orient="row").sort("id")


def _stored(folder: Path) -> pl.DataFrame:
    try:
        table = pl.read_csv(io.BytesIO(read_input(folder / FILE)), schema=dict(COLUMNS))
        fault = _fault_of(table)
    except pl.exceptions.PolarsError as error:
        fault, *_ = str(error).splitlines()  # the others advise who calls polars
    if fault:
        raise ReportError(f"{folder / FILE} is no table of figures ({fault}). {_next_step(folder)}")
    return table


def _fault_of(table: pl.DataFrame) -> str | None:
    empty = [name for name in ("id", "kind", "column", "value", "runs") if table[name].has_nulls()]
    if empty:
        return f"a row without {empty[0]}"
    if table["id"].is_duplicated().any():
        return "an id that two rows have"
    if (table["low"].is_null() != table["high"].is_null()).any():
        return "a row with one end of an interval"
    return None


def _next_step(folder: Path) -> str:
    return f"Restore it from git, or write it anew: `python -m reports.figures.tables {folder}`."


@cache
def runs_of(version: Version) -> Runs:
    """Return the runs of a version, with their pairs."""
    return Runs(runs(version), iterations(version))


class _Rows(dict[str, Mapping[str, Any]]):
    folder: Path  # of the version

    def __missing__(self, name: str) -> Mapping[str, Any]:
        raise ReportError(f"{self.folder / FILE} has no figure {name}. {_next_step(self.folder)}")


@cache
def rows_by_id(version: Version) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the figures by their ids. To ask for one that is not there by ``[]`` raises ReportError."""
    rows = _Rows((row["id"], row) for row in tables(version)["figures"].iter_rows(named=True))
    rows.folder = version.folder
    return rows


def declared_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, str]]:
    """Yield the fields that declare each figure of completed runs; each row has the columns of the table of runs."""
    frame = pl.DataFrame(
        [
            pl.Series(column.name, [row.get(column.name) for row in rows], DTYPES[column.kind], strict=False)
            for column in (*IDENTITY, *WORK, *WHERE)
        ]
    )
    known = Runs(frame.with_columns(outcome=pl.lit("completed")), pl.DataFrame())
    for declared in declarations(known):
        yield dict(zip(COLUMNS, _declaring(declared), strict=False))


def _row(figure: Figure) -> tuple[Any, ...]:
    bounds = (
        None if number is None else float(f"{number:.{DIGITS}g}") for number in (figure.value, figure.low, figure.high)
    )
    return (*_declaring(figure.declaration), *bounds, figure.runs, figure.status)


def _declaring(declared: Declaration) -> tuple[str, ...]:
    of, over = (
        "&".join(f"{name}={value}" for name, value in (own or {}).items()) for own in (declared.of, declared.over)
    )
    return declared.id, declared.kind, declared.column, of, over, declared.unit


def content(table: pl.DataFrame, suffix: str) -> bytes:
    """Return a table as a file: ``csv`` or ``parquet``."""
    file = io.BytesIO()
    if suffix == "parquet":
        table.write_parquet(file, compression="zstd")
    else:
        table.with_columns(pl.col(pl.String).map_elements(_no_formula, pl.String)).write_csv(file)
    return file.getvalue()


def _no_formula(text: str) -> str:
    """A spreadsheet runs a text that begins so; with an apostrophe before it, it shows the text."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def write(folder: Path) -> Path:
    """Write ``figures.csv`` of the version in ``folder``; return its path. Raises ReportError, StoreError, OSError."""
    path = folder / FILE
    path.write_bytes(content(computed(read_version(folder, name=folder.name)), "csv"))
    return path


def read_figures(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the stored file by their ids; numbers as numbers, None for an empty field."""
    return {row["id"]: row for row in _stored(folder).iter_rows(named=True)}


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="python -m reports.figures.tables", description=f"Write {FILE} of a version.")
    parser.add_argument("version", type=results_path, metavar="VERSION")
    folder = parser.read(arguments).version
    with told_when_unreadable(folder), told_when_unwritable(folder):
        print(write(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
