"""What a matrix of this labscale would run on GPUs, to say what of it was not measured."""

from typing import Final

from suite.cases import expand
from suite.catalog import load_catalog
from suite.matrix import load_matrix
from suite.schema import Case

MATRIX: Final = "full"


def planned_cases() -> list[Case]:
    """Raises MatrixError when the matrix or the catalog is not valid."""
    catalog = load_catalog()
    return expand(load_matrix(MATRIX, catalog), catalog, device="cuda", assets="offline")
