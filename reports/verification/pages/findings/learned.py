"""More GPUs, fewer optimiser steps: the reward after as many iterations, beside what other seeds had."""

from collections.abc import Mapping, Sequence

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.published import curve_of
from reports.verification.figures.references import ASSETS, Size, size_of
from reports.verification.figures.series import is_as_shipped, with_cold_starts
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.stored_version import StoredVersion

type Curves = Mapping[Size, Mapping[int, rewards.Curve]]  # size -> seed -> rewards of its first run


def figures(version: StoredVersion) -> dict[str, Json]:
    seeds = _curves_of_seeds(version)
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        for curve in _curves(one.of_report):
            rows = {f"{one.folder.name}: {stored.case_id}: reward": _learned(stored, seeds) for stored in curve}
            if None not in rows.values() and len({world_size(stored.case) for stored in curve}) > 1:
                found |= {of: row for of, row in rows.items() if row is not None}
    return found


def _curves(cases: Sequence[StoredCase]) -> list[list[StoredCase]]:
    cold = with_cold_starts(cases)
    curves: dict[object, list[StoredCase]] = {}
    for stored in cases:
        is_strong = (stored.case["scaling"], stored.case["minibatch_rule"]) == ("strong", "fixed_minibatch")
        is_on_one_node = stored.case["nnodes"] == 1 and stored.case["series"] not in cold
        if is_strong and is_on_one_node and is_as_shipped(stored):
            curves.setdefault(curve_of(stored.case), []).append(stored)
    return [*curves.values()]


def _learned(stored: StoredCase, seeds: Curves) -> Json | None:
    iterations = stored.case["iterations"]
    own = {rewards.seed_of(record) for record in stored.completed}
    ends = [rewards.smooth(rewards.curve_of(record)) for record in stored.completed]
    if not all(ends):
        return None
    others = [
        rewards.smooth(curve[:iterations])
        for seed, curve in seeds.get(size_of(stored), {}).items()
        if seed not in own and len(curve) >= iterations
    ]
    last = [curve[-1] for curve in others if curve]
    return {
        "reward": formulas.median([end[-1] for end in ends]),
        "other_seeds": len(last),
        "worst_of_other_seeds": min(last, default=None),
        "median_of_other_seeds": formulas.median_of_known(last),
        "best_of_other_seeds": max(last, default=None),
    }


def _curves_of_seeds(version: StoredVersion) -> Curves:
    """Return the runs that were made to see what is learned; of equal seeds the first."""
    found: dict[Size, dict[int, rewards.Curve]] = {}
    for one in version.sets:
        for stored in one.of_report if version.role(one) == "learning" else ():
            if stored.case["assets"] == ASSETS:
                for record in rewards.learned_rounds(stored):
                    of_size = found.setdefault(size_of(stored), {})
                    of_size.setdefault(rewards.seed_of(record), rewards.curve_of(record))
    return found
