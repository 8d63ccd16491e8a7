"""What a part of an iteration takes alone, and the same part within training.

A unit is one step of all environments of a rank, or the all-reduces of one optimiser step. It is that of the slowest
rank; of all-reduces that of the rank that waited least.
"""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures.published import curve_of
from reports.verification.figures.round_columns import complete_rows
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.stored_version import StoredVersion

COLUMNS: Final = {
    "environment_step": "environment_step_time_s",
    "rendering": "render_time_s",
    "all_reduce": "all_reduce_time_s",
    "collection": "collection_time_s",
}


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return set, case and part -> its time, and how many times that of the fewest GPUs in the same set."""
    every = {one.folder.name: [case for case in one.of_report if _is_on_gpus(case)] for one in version.with_speeds}
    keys = {_key(stored, _part(stored)) for cases in every.values() for stored in cases if _part(stored) in COLUMNS}
    found: dict[str, Json] = {}
    for name, cases in every.items():
        for part in COLUMNS:
            alike = [stored for stored in cases if _key(stored, part) in keys and _does(stored, part)]
            found |= {f"{name}: {case_id}: {part}": row for case_id, row in _timed(alike, part).items()}
    return found


def _is_on_gpus(stored: StoredCase) -> bool:
    return bool(stored.completed) and stored.case["device"] == "cuda"


def _part(stored: StoredCase) -> str:
    """Return what a case does alone: over Ray it makes rollouts as well."""
    workload = str(stored.case.get("workload", "train"))
    return "collection" if workload == "collection_ray" else workload


def _key(stored: StoredCase, part: str) -> tuple[object, ...]:
    """A gradient has the size of its agent, whatever the environments; a step is the same with every library."""
    case = stored.case
    size = case["rl_library"] if part == "all_reduce" else case["num_envs"]
    return part, case["task"], case["stack"], size


def _does(stored: StoredCase, part: str) -> bool:
    case = stored.case
    is_plain = case["nnodes"] == 1 and case.get("division", "closed") == "closed"
    return is_plain and _part(stored) in {"train", part}


def _timed(cases: Sequence[StoredCase], part: str) -> dict[str, Json]:
    fewest: dict[object, float] = {}
    found = {}
    for stored in sorted(cases, key=lambda stored: world_size(stored.case)):
        time_s = _unit_s(stored, part)
        if time_s is not None:
            first_s = fewest.get(curve_of(stored.case))
            fewest.setdefault(curve_of(stored.case), time_s)
            found[stored.case_id] = {"time_s": time_s, "times_fewest": first_s and time_s / first_s}
    return found


def _unit_s(stored: StoredCase, part: str) -> float | None:
    of_ranks = min if part == "all_reduce" else max
    units = stored.case["optimiser_steps" if part == "all_reduce" else "num_steps_per_env"]
    rounds = [complete_rows(record, COLUMNS[part], formulas.marked_iterations(record)) for record in stored.completed]
    times_s = [formulas.median([of_ranks(row) / units for row in rows]) for rows in rounds if rows]
    return formulas.median_of_known(times_s)
