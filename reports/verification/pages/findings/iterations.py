"""Where an iteration goes, at the fewest and at the most GPUs of every curve."""

from collections.abc import Sequence
from typing import Final

from reports.verification.figures.case_figures import gpu_utilisation_percent, power_w
from reports.verification.figures.iteration_parts import mean_shares
from reports.verification.figures.series import curves_on_one_node
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.stored_version import StoredVersion

HALF: Final = 0.5


def figures(version: StoredVersion) -> dict[str, Json]:
    ends = [
        (one.folder.name, stored)
        for one in version.with_speeds
        for curve in curves_on_one_node(one)
        for stored in (curve if len(curve) == 1 else (curve[0], curve[-1]))
    ]
    found = {
        f"{name}: {stored.case_id}: iteration": row for name, stored in ends if (row := _split(stored)) is not None
    }
    alone = [
        (found[key], _busy(stored))
        for name, stored in ends
        if world_size(stored.case) == 1 and (key := f"{name}: {stored.case_id}: iteration") in found
    ]
    return {**found, **({"every iteration on one GPU": _together(alone)} if alone else {})}


def _split(stored: StoredCase) -> Json | None:
    """Return the mean over all ranks of all rounds; None where the parts are not known, or no all-reduce of several."""
    shares, is_several = mean_shares(stored.completed), world_size(stored.case) > 1
    if not shares or (is_several and "all_reduce" not in shares):
        return None
    power = power_w(stored.completed)
    between = shares["all_reduce"] + shares["waiting"] if is_several else None
    return {
        "rollout": 1 - shares["learn"] - (between or 0.0),
        "learning": shares["learn"],
        "between_ranks": between,
        "power_w_of_a_gpu": power and power / world_size(stored.case),
    }


def _busy(stored: StoredCase) -> float | None:
    percent = gpu_utilisation_percent(stored.completed)
    return None if percent is None else percent / 100


def _together(alone: Sequence[tuple[Json, float | None]]) -> Json:
    learning = [row["learning"] for row, _ in alone]
    busy = [share for _, share in alone if share is not None]
    return {
        "cases": len(learning),
        "least_learning": min(learning),
        "most_learning": max(learning),
        "learn_more_than_half": sum(share > HALF for share in learning),
        "least_busy": min(busy, default=None),
        "most_busy": max(busy, default=None),
    }
