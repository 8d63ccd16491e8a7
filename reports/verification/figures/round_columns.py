"""Times of all ranks of a round in chosen iterations, and what of an iteration its parts are. Pure."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet


def complete_rows(record: Json, column: str, iterations: Sequence[int]) -> list[list[float]]:
    """Return the times of all ranks, of each of these iterations in which every rank has one."""
    columns = [rank["samples"].get(column, []) for rank in record["ranks"]]
    rows = [[times_s[iteration] for times_s in columns] for iteration in iterations if all(columns)]
    return [row for row in rows if None not in row]


def shares_of_ranks(record: Json) -> list[tuple[float, float | None]] | None:
    """Return of each rank the part of its time that learns, and that is within all-reduce (waiting included).

    They are those of the marked iterations. None where one of the times that every part is told from is missing; the
    second is None where not every rank has an all-reduce.
    """
    marked = formulas.marked_iterations(record)
    names = ("iteration_time_s", "learning_time_s", "environment_step_time_s", "all_reduce_time_s")
    rows = {name: complete_rows(record, name, marked) for name in names}
    known = {name for name in names if marked and len(rows[name]) == len(marked)}
    if not {*names[:3]} <= known:
        return None
    whole_s, learning_s, _, reduced_s = ([sum(times_s) for times_s in zip(*rows[name], strict=True)] for name in names)
    if names[3] not in known:
        return [(learned / whole, None) for learned, whole in zip(learning_s, whole_s, strict=True)]
    each = zip(learning_s, reduced_s, whole_s, strict=True)
    return [((learned - reduced) / whole, reduced / whole) for learned, reduced, whole in each]


def series_of(one: StoredSet, kind: str, *, learn: bool = False) -> list[list[StoredCase]]:
    """Return the cases of each series of one kind; ``learn``: of those that train alone.

    A ``sweep`` varies the environments of one number of ranks, ``scaling`` anything else. Series with cold starts or
    with tuned cases are neither.
    """
    kept = [stored for stored in one.of_report if not learn or stored.case.get("workload", "train") == "train"]
    names = dict.fromkeys(stored.case["series"] for stored in kept)
    every = [[stored for stored in kept if stored.case["series"] == name] for name in names]
    return [cases for cases in every if _kind(cases) == kind]


def _kind(cases: Sequence[StoredCase]) -> str:
    is_changed = any(
        stored.case.get("kernel_cache") == "empty" or stored.case.get("division") == "open" for stored in cases
    )
    ranks = {(stored.case["nnodes"] * stored.case["nproc_per_node"]) for stored in cases}
    is_sweep = len(ranks) == 1 and len({stored.case["num_envs"] for stored in cases}) > 1
    return "another" if is_changed else "sweep" if is_sweep else "scaling"


def is_as_shipped(stored: StoredCase) -> bool:
    """Whether a case trains on GPUs of one node as upstream ships it, and completed."""
    case = stored.case
    is_closed = case.get("division", "closed") == "closed" and case.get("workload", "train") == "train"
    return bool(stored.completed) and is_closed and case["device"] == "cuda" and case["nnodes"] == 1
