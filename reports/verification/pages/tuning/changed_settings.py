"""Cases with changed settings, each beside its case as shipped: seeds, rewards, gains and times to a reward. Pure."""

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.estimates import Estimate
from reports.verification.figures.published import case_as_shipped, ratio_of
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import trainings
from reports.verification.samples.set_folder import StoredSet

type Pair = tuple[StoredCase, StoredCase]  # as shipped, and with a change


def changed_pairs(one: StoredSet) -> list[Pair]:
    cases = one.in_order
    pairs = ((case_as_shipped(stored, cases), stored) for stored in cases)
    return [(shipped, changed) for shipped, changed in pairs if shipped is not None]


def is_tuned(stored: StoredCase) -> bool:
    """Tell whether it changes settings of the libraries: nothing that has a page of its own."""
    case = stored.case
    return not (case.get("deterministic") or trainings(case) > 1 or case.get("with_packages"))


def gain_of(pair: Pair) -> Estimate | None:
    return ratio_of(*pair) if all(stored.published_s for stored in pair) else None


def num_seeds(pair: Pair) -> list[int]:
    return [len({rewards.seed_of(record) for record in rewards.learned_rounds(stored)}) for stored in pair]


def distinct_curves(stored: StoredCase) -> list[rewards.Curve]:
    """Return the rewards of its rounds, those of rounds that learn the same once."""
    curves = map(rewards.curve_of, stored.completed)
    return list(dict.fromkeys(curve for curve in curves if any(reward is not None for reward in curve)))


def reward_as_shipped(pair: Pair) -> float | None:
    """Return what a run has to reach: the most that all as shipped reached, with several seeds a share of the rise."""
    share = rewards.SHARE if min(num_seeds(pair)) > 1 else 1.0
    return rewards.reward_of_all(distinct_curves(pair[0]), share=share)


def times_as_soon(pair: Pair) -> Estimate | None:
    """Return how many times as soon the reward as shipped comes: by seed, or with one seed by the medians."""
    reward = reward_as_shipped(pair)
    shipped_s, changed_s = (rewards.times_to(stored, reward) for stored in pair)
    if min(num_seeds(pair)) > 1:
        return rewards.sooner_by_seed(shipped_s, changed_s)
    return formulas.ratio([*shipped_s.values()], [*changed_s.values()], 1.0) if shipped_s and changed_s else None
