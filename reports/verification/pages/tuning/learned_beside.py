"""What several ranks learn beside one, and other stacks beside Newton: seed by seed, as many frames and steps."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.estimates import Estimate, mean_difference
from reports.verification.figures.references import size_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import trains
from reports.verification.finding import Json
from reports.verification.pages.others.stacks import ORDER
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.stored_version import StoredVersion

MIN_SEEDS: Final = 5  # that both have, before one surely learns more
MIN_ITERATIONS: Final = 20  # before which rewards say little

type Cases = Sequence[StoredCase]
type Rewards = dict[int, float]  # by seed


def figures(version: StoredVersion) -> dict[str, Json]:
    every = [stored for one in version.sets for stored in one.of_report]
    kept = [stored for stored in every if trains(stored) and stored.case.get("division", "closed") == "closed"]
    cases = [stored for stored in kept if rewards.learned_rounds(stored)]
    ranks = _pairs(cases, lambda one: (size_of(one)._replace(ranks=None), one.case["assets"]), _ranks_beyond_one)
    stacks = _pairs(
        cases,
        lambda one: (size_of(one)._replace(stack=""), one.case["assets"], world_size(one.case)),
        lambda one: ORDER.index(one.case["stack"]),
    )
    named = {f"{_name(base)}: {world_size(other[0].case)} ranks beside one": (base, other) for base, other in ranks}
    named |= {
        f"{_name(base)}, {world_size(other[0].case)} ranks: {other[0].case['stack']}": (base, other)
        for base, other in stacks
    }
    return {of: row for of, (base, other) in named.items() if (row := _figures(base, other))}


def _name(base: Cases) -> str:
    return f"{size_of(base[0])}, {base[0].case['assets']} assets"


def _ranks_beyond_one(stored: StoredCase) -> int:
    return world_size(stored.case) - 1


def _pairs(
    cases: Cases, like: Callable[[StoredCase], Any], place: Callable[[StoredCase], int]
) -> list[tuple[Cases, Cases]]:
    """Return cases that are alike in all but ``place``, with those at place 0; nothing where there are none."""
    groups: dict[Any, dict[int, list[StoredCase]]] = {}
    for stored in cases:
        groups.setdefault(like(stored), {}).setdefault(place(stored), []).append(stored)
    return [(group[0], group[at]) for group in groups.values() if 0 in group for at in sorted(group) if at > 0]


def _figures(base: Cases, other: Cases) -> Json | None:
    """Return the figures at the iteration that most seeds of both have, the last of several; None without rewards."""
    lengths = sorted({one.case["iterations"] for one in (*base, *other) if one.case["iterations"] >= MIN_ITERATIONS})
    known = [(after, _by_seed(base, after), _by_seed(other, after)) for after in lengths]
    known = [each for each in known if each[1] and each[2]]
    if not known:
        return None
    after, of_base, of_other = max(known, key=lambda each: (len(each[1].keys() & each[2].keys()), each[0]))
    differences = [of_other[seed] - of_base[seed] for seed in sorted(of_base.keys() & of_other.keys())]
    difference = mean_difference(differences) if len(differences) >= MIN_SEEDS else None
    return {
        "iterations": after,
        "rewards_of_base": _range(of_base),
        "rewards_of_other": _range(of_other),
        "shared_seeds": len(differences),
        **of_pair("difference", difference),
        "learns": _word(difference),
    }


def _by_seed(cases: Cases, iterations: int) -> Rewards:
    """Return the reward of each seed, of several runs their median."""
    found: dict[int, list[float]] = {}
    for record in chain.from_iterable(map(rewards.learned_rounds, cases)):
        curve = rewards.curve_of(record)
        reward = rewards.reward_after(curve, iterations) if len(curve) >= iterations else None
        if reward is not None:
            found.setdefault(rewards.seed_of(record), []).append(reward)
    return {seed: formulas.median(of_seed) for seed, of_seed in found.items()}


def _range(of_seeds: Rewards) -> Json:
    values = of_seeds.values()
    return {"number": len(values), "least": min(values), "most": max(values)}


def _word(difference: Estimate | None) -> str:
    if difference is None or difference[1] is None:
        return "unknown"
    low, high = difference[1]
    return "less" if high < 0 else "more" if low > 0 else "no sure difference"
