"""What rounds learned, and how much sooner a tuned case has the reward of its case as shipped. From samples, pure."""

from collections.abc import Collection, Mapping
from typing import Final

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.stored import StoredCase

WINDOW: Final = 5  # iterations that a reward is the median of
SHARE: Final = 0.9  # of the rise to the most that every round as shipped reached

type Estimate = tuple[float, formulas.Interval | None]
type Curve = tuple[float | None, ...]  # mean reward over the ranks, of every iteration


def sooner(shipped: StoredCase, tuned: StoredCase) -> Estimate | None:
    """Return the mean over seeds of the ratio of times, with its interval.

    None where the rounds share one seed, where the reward as shipped does not rise, and where a round never has it.
    """
    seeded = [case for case in (shipped, tuned) if case.case["seed_per_round"] and len(case.completed) > 1]
    reward = reward_of_all([curve_of(record) for record in shipped.completed], share=SHARE)
    if len(seeded) < 2 or reward is None:  # noqa: PLR2004 - both of them
        return None
    return sooner_by_seed(times_to(shipped, reward), times_to(tuned, reward))


def sooner_by_seed(shipped_s: Mapping[int, float], tuned_s: Mapping[int, float]) -> Estimate | None:
    """Return the mean of the ratios of times of rounds with one number, which have one seed; None without any."""
    ratios = [shipped_s[number] / tuned_s[number] for number in sorted(shipped_s.keys() & tuned_s.keys())]
    return (formulas.geometric_mean(ratios), formulas.interval(ratios)) if ratios else None


# --- one round's rewards ---


def curve_of(record: Json) -> Curve:
    columns = [rank["samples"].get("reward_mean", []) for rank in record["ranks"]]  # with rsl_rl only rank 0 has some
    known = [[value for value in values if value is not None] for values in zip(*filter(None, columns), strict=True)]
    return tuple(sum(values) / len(values) if values else None for values in known)


def smooth(curve: Curve) -> list[float]:
    """Return the median of every window in which each iteration has a reward."""
    windows = [curve[end - WINDOW : end] for end in range(WINDOW, len(curve) + 1)]
    return [formulas.median([one for one in window if one is not None]) for window in windows if None not in window]


def reward_of_all(curves: Collection[Curve], *, share: float = 1.0) -> float | None:
    """Return this share of the rise to the most that every curve reached; None if one began with as much.

    The rise is from the highest reward that a curve began with.
    """
    known = [smooth(curve) for curve in curves]
    if not known or not all(known):
        return None
    most, start = min(map(max, known)), max(one[0] for one in known)
    if most <= start:
        return None
    return most if share == 1 else start + share * (most - start)


def iterations_to(curve: Curve, reward: float) -> int | None:
    """Return how many iterations a round takes until it has the reward; None if it never does."""
    ends = (end for end in range(WINDOW, len(curve) + 1) if None not in curve[end - WINDOW : end])
    return next((end for end in ends if smooth(curve[end - WINDOW : end])[0] >= reward), None)


def times_to(stored: StoredCase, reward: float | None) -> dict[int, float]:
    """Return round -> seconds at its later pace until it has the reward; nothing if one of them never has it."""
    needed = {
        record["round"]: None if reward is None else iterations_to(curve_of(record), reward)
        for record in stored.completed
    }
    if None in needed.values():
        return {}
    return {number: number_of * stored.times_s[number] for number, number_of in needed.items() if number_of}


def last_reward(stored: StoredCase) -> float | None:
    """Return the median over rounds of what each had at its end; None if one of them reports no rewards."""
    known = [smooth(curve_of(record)) for record in stored.completed]
    return formulas.median([curve[-1] for curve in known]) if known and all(known) else None


def last_return(stored: StoredCase) -> float | None:
    """Return the mean return of the last iteration in which any round reports one, median over the rounds."""
    return next(reversed(medians_by_iteration(stored).values()), None)


def medians_by_iteration(stored: StoredCase) -> dict[int, float]:
    """Return iteration -> mean reward, the median over the rounds that have one there."""
    curves = [curve_of(record) for record in stored.completed]
    found = {}
    for iteration in range(max(map(len, curves), default=0)):
        values = [curve[iteration] for curve in curves if iteration < len(curve)]
        if (reward := formulas.median_of_known(values)) is not None:
            found[iteration] = reward
    return found
