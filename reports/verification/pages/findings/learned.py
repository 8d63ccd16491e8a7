"""More GPUs, fewer optimiser steps: the reward after as many iterations, beside what other seeds had."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.published import curve_of
from reports.verification.figures.round_columns import is_as_shipped
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase, counts
from reports.verification.samples.round_facts import processes, world_size
from reports.verification.samples.stored_version import StoredVersion

# Elsewhere all ranks train everything together; here each trains the network that reads its own pictures.
RANKS_LEARN_ALONE: Final = {"Isaac-Reorient-Cube-Shadow-Camera-Direct"}

type Curves = Mapping[Hashable, Mapping[int, rewards.Curve]]  # size -> seed -> rewards of its first run


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
    cold = {stored.case["series"] for stored in cases if stored.case.get("kernel_cache") == "empty"}
    curves: dict[Hashable, list[StoredCase]] = {}
    for stored in cases:
        is_strong = (stored.case["scaling"], stored.case["minibatch_rule"]) == ("strong", "fixed_minibatch")
        if is_strong and is_as_shipped(stored) and stored.case["series"] not in cold:
            curves.setdefault(curve_of(stored.case), []).append(stored)
    return [*curves.values()]


def _learned(stored: StoredCase, seeds: Curves) -> Json | None:
    iterations = stored.case["iterations"]
    own = {_seed(record) for record in stored.completed}
    ends = [rewards.smooth(rewards.curve_of(record)) for record in stored.completed]
    if not all(ends):
        return None
    others = [
        rewards.smooth(curve[:iterations])
        for seed, curve in seeds.get(_size(stored.case), {}).items()
        if seed not in own and len(curve) >= iterations
    ]
    last = [curve[-1] for curve in others if curve]
    return {
        "reward": formulas.median([end[-1] for end in ends]),
        "other_seeds": len(last),
        "worst_of_other_seeds": min(last, default=None),
        "median_of_other_seeds": formulas.median(last) if last else None,
        "best_of_other_seeds": max(last, default=None),
    }


def _curves_of_seeds(version: StoredVersion) -> Curves:
    """Return the runs that were made to see what is learned; of equal seeds the first."""
    found: dict[Hashable, dict[int, rewards.Curve]] = {}
    for one in version.sets:
        for stored in one.of_report if version.role(one) == "learning" else ():
            if stored.case["assets"] == "offline":
                for record in _that_learned(stored):
                    of_size = found.setdefault(_size(stored.case), {})
                    of_size.setdefault(_seed(record), rewards.curve_of(record))
    return found


def _that_learned(stored: StoredCase) -> Iterator[Json]:
    """Yield measurements, and rounds that are none only because they learned less than their reference."""
    for record in stored.rounds:
        checks = [check for rank in record["ranks"] for check in rank.get("validity", ())]
        failed = {check["name"] for check in checks if check["verdict"] == "failure"}
        policies = {rank["parameters_sha256"] for rank in record["ranks"]} - {None}
        is_said = record["outcome"] == "invalid" and (record["reason"] or "").endswith("(learns_worse)")
        if counts(record) or (
            is_said and failed == {"learning"} and len(policies) <= 1 and not record.get("profiled_ranks")
        ):
            yield record


def _size(case: Json) -> Hashable:
    """What learning depends on, besides the seed."""
    ranks = world_size(case) if case["task"] in RANKS_LEARN_ALONE else None
    frames = case["num_envs_global"] * case["num_steps_per_env"]
    return case["task"], case["rl_library"], case["stack"], ranks, frames, case["optimiser_steps"]


def _seed(record: Json) -> int:
    """Return the seed of the first rank."""
    case = record["case"]
    return int(case["seed"] + (record["round"] * processes(case) if case.get("seed_per_round") else 0))
