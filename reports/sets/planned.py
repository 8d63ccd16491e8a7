"""What a matrix of this labscale would run, to say what of it was not measured and what can be run again."""

from typing import Final

from suite.matrix.cases import case_id_of, expand, on_nodes_of, points, with_numbers_alone
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix, read_table
from suite.schema.record import Case, Device

MATRIX: Final = "full"


def planned_cases(matrix: str = MATRIX, *, device: Device = "cuda") -> list[Case]:
    """Raises MatrixError when the matrix or the catalog is not valid, or the matrix asks for all GPUs of a node."""
    catalog = load_catalog()
    return expand(on_nodes_of(load_matrix(matrix, catalog)), catalog, device=device, assets="offline")


def numbered_case_ids(matrix: str, *, device: Device) -> list[str]:
    """The ids of a matrix without topologies that ask for all GPUs of a node, also of tasks that no catalog knows.

    Raises MatrixError when the matrix has no valid form.
    """
    return [
        case_id_of(point, library, stack, topology, device)
        for series in read_table(matrix).series
        for point, library, stack, topology in points(with_numbers_alone(series))
    ]
