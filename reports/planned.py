"""What a matrix of this labscale would run, to say what of it was not measured and what can be run again."""

from typing import Final

from suite.cases import expand
from suite.catalog import load_catalog
from suite.matrix import load_matrix
from suite.schema import Case, Device

MATRIX: Final = "full"


def planned_cases(matrix: str = MATRIX, *, device: Device = "cuda") -> list[Case]:
    """Raises MatrixError when the matrix or the catalog is not valid."""
    catalog = load_catalog()
    return expand(load_matrix(matrix, catalog), catalog, device=device, assets="offline")
