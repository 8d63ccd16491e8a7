"""Charts of tasks: frames per second of the slowest and the fastest run and the ideal, parts, ranks, and rewards."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.figures.case_figures import over_median_rank
from reports.verification.figures.iteration_parts import mean_shares
from reports.verification.figures.rewards import medians_by_iteration
from reports.verification.figures.round_columns import RATES, rate, slowest_median_s
from reports.verification.figures.series import series_of
from reports.verification.finding import Json
from reports.verification.pages.cost.times_to_reward import curves_of
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.stored_version import StoredVersion

COLUMNS = {**RATES, "total_fps": "iteration_time_s"}  # of which a rate is frames over the time


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {}
    for one in version.with_speeds:
        for curve in [curve for cases in series_of(one.of_report).values() for curve in curves_of(cases)]:
            ideals = _ideals(curve)
            for stored in curve:
                found[f"{one.folder.name}: {stored.case_id}"] = {**_figures(stored), **ideals[stored.case_id]}
    return found


def _ideals(curve: Sequence[StoredCase]) -> dict[str, Json]:
    """Return what each case would reach if a rank did as much as one of the fewest ranks of the curve."""
    found: dict[str, Json] = {stored.case_id: {} for stored in curve}
    fewest_first = sorted(curve, key=lambda stored: world_size(stored.case))
    for name, column in COLUMNS.items():
        known = [(stored, fps) for stored in fewest_first if _has_frames(stored) and (fps := rate(stored, column))]
        for stored, _ in known:
            first, its_fps = known[0]
            found[stored.case_id][f"{name}_ideal"] = its_fps / world_size(first.case) * world_size(stored.case)
    return found


def _has_frames(stored: StoredCase) -> bool:
    return bool(stored.case.get("workload") != "all_reduce")


def _figures(stored: StoredCase) -> Json:
    ranges = {f"{name}_range": _range(stored, column) for name, column in COLUMNS.items() if _has_frames(stored)}
    shares, iteration_s = mean_shares(stored.completed), stored.seconds_per_iteration
    of_ranks = zip(*map(over_median_rank, stored.completed), strict=True)
    rewards = medians_by_iteration(stored)
    return {
        **{name: span for name, span in ranges.items() if span},
        "parts_s": {part: share * iteration_s for part, share in shares.items()},
        "ranks": [[formulas.median(ratios), min(ratios), max(ratios)] for ratios in of_ranks],
        "iterations_with_reward": [*rewards],
        "rewards": [*rewards.values()],
    }


def _range(stored: StoredCase, column: str) -> list[float] | None:
    """Return the frames per second of the slowest and of the fastest run; None if no run has the time."""
    times_s = [time_s for record in stored.completed if (time_s := slowest_median_s(record, column))]
    return [stored.frames / max(times_s), stored.frames / min(times_s)] if times_s else None
