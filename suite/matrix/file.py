"""Read a matrix file, which defines what a campaign measures."""

import os
import reprlib
from pathlib import Path

from suite.errors import MatrixError
from suite.files.toml_file import did_you_mean, read_toml
from suite.matrix.catalog import Catalog
from suite.matrix.rules import problems_of
from suite.matrix.tables import Matrix, MatrixTable

MATRICES_PATH = Path(__file__).parents[2] / "tasks" / "matrices"


def load_matrix(name_or_path: str | Path, catalog: Catalog) -> Matrix:
    """Read ``tasks/matrices/<name>.toml``, or the file at a path.

    Raises MatrixError with every problem of the file and its line.
    """
    file = read_toml(_matrix_path(name_or_path))
    table = file.validate(MatrixTable)
    if problems := problems_of(table, catalog):
        raise file.error(problems)
    return Matrix(name=file.path.stem, **dict(table))


def read_table(name_or_path: str | Path) -> MatrixTable:
    """Read the tables without checking them against the catalog. Raises MatrixError if their form is wrong."""
    return read_toml(_matrix_path(name_or_path)).validate(MatrixTable)


def matrix_names() -> list[str]:
    """Names of the matrices that come with labscale, sorted."""
    return sorted(file.stem for file in MATRICES_PATH.glob("*.toml"))


def _matrix_path(name_or_path: str | Path) -> Path:
    path, names = Path(name_or_path), matrix_names()
    if str(name_or_path) in names:
        return MATRICES_PATH / f"{name_or_path}.toml"
    if path.suffix != ".toml" and not os.path.isfile(path):  # noqa: PTH113 - False for any name, even one that is too long
        hint = did_you_mean(str(name_or_path), names)
        raise MatrixError(
            f"unknown matrix {reprlib.repr(str(name_or_path))}; there are {', '.join(names)}, or give the path of a"
            f" TOML file.{hint}"
        )
    return path
