"""What a command changes in a matrix before it is expanded, and which of its cases it selects."""

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

from suite.errors import MatrixError, UsageError
from suite.matrix.own_worker import name_of, over, variant_of
from suite.matrix.resources import UNBOUNDED
from suite.matrix.tables import Matrix, Series
from suite.schema.record import Case


def on_nodes_of(matrix: Matrix, ranks_per_node: int = UNBOUNDED.gpus_per_node) -> Matrix:
    """Return the matrix with this number in place of every ``all`` in a topology. A table has each topology once.

    Raises:
        MatrixError: it asks for all GPUs of a node, but the nodes are unknown.
    """
    asks = [series.name for series in matrix.series if any(text.endswith("all") for text in series.topologies)]
    if asks and ranks_per_node >= UNBOUNDED.gpus_per_node:
        raise MatrixError(
            f"series {asks[0]} of the matrix {matrix.name} asks for all GPUs of a node, but their number is unknown "
            "when files are only written. Name a matrix with numbers of GPUs, such as --matrix short."
        )
    number = str(max(1, ranks_per_node))

    def numbered(series: Series) -> dict[str, object]:
        return {"topologies": tuple(dict.fromkeys(topology.replace("all", number) for topology in series.topologies))}

    return _with_changes(matrix, numbered)


def _with_changes(matrix: Matrix, changes: Callable[[Series], dict[str, object]]) -> Matrix:
    """Return the matrix with these changes of each table."""
    tables = tuple(series.model_copy(update=changes(series)) for series in matrix.series)
    return matrix.model_copy(update={"series": tables})


def with_packages(matrix: Matrix, packages: Sequence[str]) -> Matrix:
    """Return the matrix with these versions (``name==version``) in every table, before those of the table itself.

    Every table is then of the open division, and its variant names the versions.

    Raises:
        UsageError: a package has two versions.
    """
    if not packages:
        return matrix
    names = [name_of(package) for package in packages]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--with names {', '.join(twice)} twice; a package has one version. Leave one of them out.")

    def versioned(series: Series) -> dict[str, object]:
        return {
            "division": "open",
            "variant": "-".join(filter(None, (series.variant, variant_of(packages)))),
            "with_packages": over(packages, series.with_packages),
        }

    return _with_changes(matrix, versioned)


def with_num_envs(matrix: Matrix, series: str, num_envs: int) -> Matrix:
    """Return the matrix of one series alone, with another number of environments."""
    tables = tuple(
        table.model_copy(update={"num_envs": num_envs, "num_envs_more": ()})
        for table in matrix.series
        if table.name == series
    )
    return matrix.model_copy(update={"series": tables})


def selected_cases(
    cases: Sequence[Case],
    *,
    series: Sequence[str] = (),
    case_glob: Sequence[str] = (),
    rl_library: Sequence[str] = (),
    gpus: Collection[int] = (),
) -> list[Case]:
    """Return the cases that match every given criterion, each by any of its values.

    ``series`` and ``case_glob`` are fnmatch patterns of series names and case ids. ``gpus`` lists world sizes; the plan
    refuses those that are too large for the machine. An empty criterion matches all cases. Raises MatrixError if no
    case is left, with a list of what exists.
    """
    chosen = [
        case
        for case in cases
        if (not series or any(fnmatchcase(case.series, pattern) for pattern in series))
        and (not case_glob or any(fnmatchcase(case.case_id, pattern) for pattern in case_glob))
        and (not rl_library or case.rl_library in rl_library)
        and (not gpus or case.world_size in gpus)
    ]
    if not chosen:
        criteria = {"series": series, "id": case_glob, "RL library": rl_library, "GPUs": sorted(gpus)}
        asked = "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in criteria.items() if values)
        raise MatrixError(f"no configuration matches {asked or 'an empty matrix'}.{_what_exists(cases)}")
    return chosen


def _what_exists(cases: Sequence[Case]) -> str:
    """Every value that a criterion can match, in words."""
    series = ", ".join(dict.fromkeys(case.series for case in cases))
    libraries = ", ".join(dict.fromkeys(case.rl_library for case in cases))
    world_sizes = ", ".join(map(str, sorted({case.world_size for case in cases})))
    ids = "".join(f"\n  {case.case_id}" for case in cases)
    return f" Series: {series}. RL libraries: {libraries}. GPUs: {world_sizes}. Configurations:{ids}"
