"""Where an iteration goes, at the fewest and at the most GPUs of every curve."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
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
    between = shares["all_reduce"] + shares["waiting"] if is_several else None
    return {
        "rollout": 1 - shares["learn"] - (between or 0.0),
        "learning": shares["learn"],
        "between_ranks": between,
        "power_w_of_a_gpu": _power_w_of_a_gpu(stored),
    }


def _power_w_of_a_gpu(stored: StoredCase) -> float | None:
    seen = [record["telemetry"] for record in stored.completed if record.get("telemetry")]
    powers_w = [one["power_w"]["mean"] for one in seen if one["power_w"]]
    return formulas.median(powers_w) / world_size(stored.case) if powers_w else None


def _busy(stored: StoredCase) -> float | None:
    """Return the share of time in which any kernel ran: mean over GPUs, median over rounds."""
    seen = [record["telemetry"]["gpus"] for record in stored.completed if record.get("telemetry")]
    known = [
        [gpu["sm_utilisation_percent"]["mean"] for gpu in gpus if gpu["sm_utilisation_percent"] is not None]
        for gpus in seen
    ]
    means = [sum(percents) / len(percents) / 100 for percents in known if percents]
    return formulas.median(means) if means else None


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
