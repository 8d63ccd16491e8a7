"""Remarks on the rounds of a case, on the pages of tasks: what did not settle, and what a host took from them."""

from typing import Final

from reports.verification import formulas
from reports.verification.figures.case_figures import stolen_share
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

STOLEN_MATTERS: Final = 0.01  # of the CPU time that the host's processes wanted
OTHERS_MATTER: Final = 5.0  # percent of all cores


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what is remarked on each round by its number; nothing of cases without a remark."""
    return {
        f"{one.folder.name}: {stored.case_id}": found
        for one in version.with_speeds
        for stored in one.of_report
        if (found := _remarks(stored))
    }


def _remarks(stored: StoredCase) -> Json:
    by_round = {str(record["round"]): record for record in stored.completed}
    found = {
        "unsteady": {number: _halves(one) for number, one in by_round.items() if not formulas.has_settled(one)},
        "stolen_cpu_share": {
            number: share for number, one in by_round.items() if (share := stolen_share(one)) and share > STOLEN_MATTERS
        },
        "other_processes_cpu_percent": {
            number: percent
            for number, one in by_round.items()
            if not one.get("neighbours") and (percent := _others_percent(one)) and percent > OTHERS_MATTER
        },
    }
    return {name: rounds for name, rounds in found.items() if rounds}


def _halves(record: Json) -> Json:
    """Return how many iterations are left after the warm-up, and by how much longer their later half takes."""
    times_s = formulas.slowest_s(record)
    steady = times_s[formulas.steady_start(times_s) :]
    half = len(steady) // 2
    is_enough = len(steady) >= formulas.MIN_STEADY
    change = formulas.median(steady[-half:]) / formulas.median(steady[:half]) - 1 if is_enough else None
    return {
        "iterations": len(steady),
        "later_half_longer_by": change,
        "warm_up_may_be_longer": formulas.is_at_limit(times_s),
    }


def _others_percent(record: Json) -> float | None:
    return (record.get("telemetry") or {}).get("host_others_percent")
