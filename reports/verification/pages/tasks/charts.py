"""Charts of tasks: frames per second of the slowest and the fastest run, each rank beside the median rank, rewards."""

from reports.verification import formulas
from reports.verification.figures.case_figures import over_median_rank
from reports.verification.figures.rewards import medians_by_iteration
from reports.verification.figures.round_columns import RATES, slowest_median_s
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

COLUMNS = {**RATES, "total_fps": "iteration_time_s"}  # of which a rate is frames over the time


def figures(version: StoredVersion) -> dict[str, Json]:
    return {
        f"{one.folder.name}: {stored.case_id}": _figures(stored)
        for one in version.with_speeds
        for stored in one.of_report
        if stored.completed
    }


def _figures(stored: StoredCase) -> Json:
    has_frames = stored.case.get("workload") != "all_reduce"
    ranges = {f"{name}_range": _range(stored, column) for name, column in COLUMNS.items() if has_frames}
    of_ranks = zip(*map(over_median_rank, stored.completed), strict=True)
    rewards = medians_by_iteration(stored)
    return {
        **{name: span for name, span in ranges.items() if span},
        "ranks": [[formulas.median(ratios), min(ratios), max(ratios)] for ratios in of_ranks],
        "iterations_with_reward": [*rewards],
        "rewards": [*rewards.values()],
    }


def _range(stored: StoredCase, column: str) -> list[float] | None:
    """Return the frames per second of the slowest and of the fastest run; None if no run has the time."""
    times_s = [time_s for record in stored.completed if (time_s := slowest_median_s(record, column))]
    return [stored.frames / max(times_s), stored.frames / min(times_s)] if times_s else None
