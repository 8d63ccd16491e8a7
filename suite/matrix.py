"""Read a matrix file, which says what a campaign measures."""

from pathlib import Path

from suite.catalog import Catalog
from suite.errors import MatrixError
from suite.matrix_check import problems_of
from suite.matrix_table import Matrix, MatrixTable
from suite.toml_file import did_you_mean, read_toml

MATRICES_PATH = Path(__file__).parent.parent / "tasks" / "matrices"


def load_matrix(name_or_path: str | Path, catalog: Catalog) -> Matrix:
    """Read ``tasks/matrices/<name>.toml`` or a file given by its path (one that ends in .toml).

    Raises MatrixError with every problem of the file, each with its line.
    """
    file = read_toml(_matrix_path(name_or_path))
    table = file.validate(MatrixTable)
    if problems := problems_of(table, catalog):
        raise file.error(problems)
    return Matrix(name=file.path.stem, **dict(table))


def matrix_names() -> list[str]:
    """Those that come with labscale, sorted."""
    return sorted(file.stem for file in MATRICES_PATH.glob("*.toml"))


def _matrix_path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path
    named = MATRICES_PATH / f"{name_or_path}.toml"
    if not named.is_file():
        names = matrix_names()
        hint = did_you_mean(str(name_or_path), names)
        raise MatrixError(
            f"unknown matrix {str(name_or_path)!r}; there are {', '.join(names)}, or give a path ending in .toml.{hint}"
        )
    return named
