"""What a matrix of this labscale would run, to say what of it was not measured."""

from typing import Final

from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.selection import on_nodes_of
from suite.schema.record import Case, Device

MATRIX: Final = "full"


def planned_cases(matrix: str = MATRIX, *, device: Device = "cuda") -> list[Case]:
    """Raises MatrixError when the matrix or the catalog is not valid, or the matrix asks for all GPUs of a node."""
    catalog = load_catalog()
    return expand(on_nodes_of(load_matrix(matrix, catalog)), catalog, device=device, assets="offline")
