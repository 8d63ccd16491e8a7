"""*Published figures*: what the tables of others imply, and the cases that stand beside them.

Frames per second are of three kinds, by what takes the time: environment steps, the whole rollout, the iteration. They
are what RL-Games printed where it printed any, for others print these; else they are by labscale's clock.
"""

from collections.abc import Iterator
from typing import Final

from reports.verification import formulas
from reports.verification.figures.published import compared_with, curve_of
from reports.verification.figures.round_columns import STEP, complete_rows, rate
from reports.verification.finding import Json
from reports.verification.pages.others import published_tables
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

KINDS: Final = {  # kind -> what RL-Games prints of it, and the time that labscale divides by
    "step": ("rl_games.step_fps", STEP),
    "step_and_inference": ("rl_games.step_inference_fps", "collection_time_s"),
    "total": ("rl_games.total_fps", "iteration_time_s"),
}


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return nothing where no speed means something, or where the topic of the page is not there."""
    tables = published_tables.read()
    if not tables["table"] or (version.shown and not version.with_speeds):
        return {}
    found = published_tables.figures(tables)
    for table in tables["table"]:
        if tuned := _tuned(version, table):
            found[f"{published_tables.name_of(table)}: tuned"] = tuned
        found |= dict(_beside(version, table))
    return found


def _beside(version: StoredVersion, table: Json) -> Iterator[tuple[str, Json]]:
    for one in version.with_speeds:
        for stored in one.of_report:
            if _stands_beside(one, stored, table):
                fps = {} if "hours" in table["rows"][0] else _fps(stored)
                runs = _fewest_runs(stored, compared_with(stored, one.of_report))
                yield f"{one.folder.name}: {stored.case_id}", {**fps, "fewest_runs_of_efficiency": runs}


def _stands_beside(one: StoredSet, stored: StoredCase, table: Json) -> bool:
    """Whether a case on one node completed, of a curve that begins with as many GPUs as that of the others."""
    case = stored.case
    is_like = (case["series"], case["rl_library"]) == (table.get("series"), table.get("rl_library"))
    if not is_like or case["nnodes"] != 1 or case["device"] != "cuda" or not stored.published_s:
        return False
    alike = [other for other in one.of_report if curve_of(other.case) == curve_of(case)]
    first = min(alike, key=lambda other: (world_size(other.case), other.case["nnodes"], other.case_id))
    return not first.published_s or world_size(first.case) == min(row["gpus"] for row in table["rows"])


def _fewest_runs(stored: StoredCase, base: StoredCase | None) -> int | None:
    """Return the runs of a case or of its baseline, whichever has fewer; None for a case without another as that."""
    if base is None or world_size(base.case) == world_size(stored.case):
        return None
    return min(len(stored.completed), len(base.completed))


def _tuned(version: StoredVersion, table: Json) -> Json | None:
    """Return the tuned cases with the most frames per second, one for each number of GPUs."""
    most: dict[int, tuple[float, StoredCase, float]] = {}
    for one in version.with_speeds:
        like = [each for each in one.of_report if each.case["series"] == table.get("tuned") and each.published_s]
        like = [each for each in like if each.case["rl_library"] == table["rl_library"]]
        shipped = {world_size(each.case): _frames_per_s(each) for each in like if each.case["division"] == "closed"}
        for each in (each for each in like if each.case["division"] == "open" and each.case["device"] == "cuda"):
            fps, gpus = _frames_per_s(each), world_size(each.case)
            if gpus in shipped and (gpus not in most or fps > most[gpus][0]):
                most[gpus] = fps, each, shipped[gpus]
    theirs, found = published_tables.most_frames(table), [most[gpus] for gpus in sorted(most)]
    if not found or theirs is None:
        return None
    return {
        "case_ids": [each.case_id for _, each, _ in found],
        "runs": [len(each.completed) for _, each, _ in found],
        "frames_per_s": [fps for fps, _, _ in found],
        "as_shipped_frames_per_s": [as_shipped for _, _, as_shipped in found],
        "their_gpus": theirs[0],
        "their_frames_per_s": theirs[1],
    }


def _frames_per_s(stored: StoredCase) -> float:
    return stored.frames / formulas.median(list(stored.published_s.values()))


def _fps(stored: StoredCase) -> Json:
    printed = {kind: _printed(stored, column) for kind, (column, _) in KINDS.items()}
    if any(printed.values()):
        return {f"{kind}_frames_per_s": value for kind, value in printed.items()}
    return {f"{kind}_frames_per_s": rate(stored, column) for kind, (_, column) in KINDS.items()}


def _printed(stored: StoredCase, column: str) -> float | None:
    """Return the rate of the median round, which is that of its time."""
    rounds = [
        [row[0] for row in complete_rows({**record, "ranks": record["ranks"][:1]}, column, counted)]
        for record in stored.completed
        for counted in [formulas.counted_iterations(record, formulas.MSER_RULE)]
    ]
    rates = [formulas.median(values) for values in rounds if values]
    return 1 / formulas.median([1 / rate for rate in rates]) if rates else None
