"""*Published figures*: frames per second of the cases that stand beside those of others.

Three kinds, by what takes the time: environment steps, the whole rollout, the iteration. They are what RL-Games printed
where it printed any, for others print these; else they are by labscale's clock.
"""

from typing import Final

from reports.verification import formulas
from reports.verification.figures.published import curve_of
from reports.verification.figures.round_columns import complete_rows
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

COMPARED: Final = {("cartpole-per-gpu", "rl_games", 1), ("ant-weak", "rl_games", 1)}  # with the fewest GPUs of others
KINDS: Final = {  # kind -> what RL-Games prints of it, and the time that labscale divides by
    "step": ("rl_games.step_fps", "environment_step_time_s"),
    "step_and_inference": ("rl_games.step_inference_fps", "collection_time_s"),
    "total": ("rl_games.total_fps", "iteration_time_s"),
}


def figures(version: StoredVersion) -> dict[str, Json]:
    return {
        f"{one.folder.name}: {stored.case_id}": _fps(stored)
        for one in version.with_speeds
        for stored in one.of_report
        if _stands_beside(one, stored)
    }


def _stands_beside(one: StoredSet, stored: StoredCase) -> bool:
    """Whether a case on one node completed, of a curve that begins with as many GPUs as that of the others."""
    case = stored.case
    alike = [other for other in one.of_report if curve_of(other.case) == curve_of(case)]
    first = min(alike, key=lambda other: (world_size(other.case), other.case["nnodes"], other.case_id))
    is_plain = case["nnodes"] == 1 and case["device"] == "cuda" and bool(stored.published_s)
    fewest = {ranks for series, library, ranks in COMPARED if (series, library) == (case["series"], case["rl_library"])}
    return is_plain and bool(fewest) and (not first.published_s or world_size(first.case) in fewest)


def _fps(stored: StoredCase) -> Json:
    printed = {kind: _printed(stored, column) for kind, (column, _) in KINDS.items()}
    if any(printed.values()):
        return {f"{kind}_frames_per_s": value for kind, value in printed.items()}
    return {f"{kind}_frames_per_s": _timed(stored, column) for kind, (_, column) in KINDS.items()}


def _printed(stored: StoredCase, column: str) -> float | None:
    """Return the rate of the median round, which is that of its time."""
    rounds = [
        [row[0] for row in complete_rows({**record, "ranks": record["ranks"][:1]}, column, counted)]
        for record in stored.completed
        for counted in [formulas.counted_iterations(record, formulas.MSER_RULE)]
    ]
    rates = [formulas.median(values) for values in rounds if values]
    return 1 / formulas.median([1 / rate for rate in rates]) if rates else None


def _timed(stored: StoredCase, column: str) -> float | None:
    rounds = [
        complete_rows(record, column, formulas.marked_iterations(record))
        if column == KINDS["step"][1]
        else complete_rows(record, column, formulas.counted_iterations(record, formulas.MSER_RULE))
        for record in stored.completed
    ]
    times_s = [formulas.median([max(row) for row in rows]) for rows in rounds if rows]
    return stored.frames / formulas.median(times_s) if times_s else None
