"""How much sooner a tuned case has the reward of its case as shipped, over seeds: computed again from samples. Pure."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.case_file import StoredCase
from reports.verification.finding import Json

WINDOW: Final = 5  # iterations that a reward is the median of
SHARE: Final = 0.9  # of the rise to the most that every round as shipped reached

type Curve = list[float | None]  # mean reward over the ranks, of every iteration


def sooner(shipped: StoredCase, tuned: StoredCase) -> tuple[float, formulas.Interval | None] | None:
    """Return the median over seeds of the ratio of times, with its interval.

    None where the rounds share one seed, where the reward as shipped does not rise, and where a round never has it.
    """
    seeded = [case for case in (shipped, tuned) if case.case.get("seed_per_round") and len(case.completed) > 1]
    reward = _reward_to_reach([_curve(record) for record in shipped.completed])
    if len(seeded) < 2 or reward is None:  # noqa: PLR2004 - both of them
        return None
    shipped_s, tuned_s = _times_s(shipped, reward), _times_s(tuned, reward)
    if shipped_s is None or tuned_s is None:
        return None
    ratios = [shipped_s[number] / tuned_s[number] for number in sorted(shipped_s.keys() & tuned_s.keys())]
    return (formulas.median(ratios), formulas.interval(ratios)) if ratios else None


def _curve(record: Json) -> Curve:
    columns = [rank["samples"].get("reward_mean", []) for rank in record["ranks"]]  # with rsl_rl only rank 0 has some
    known = [[value for value in values if value is not None] for values in zip(*filter(None, columns), strict=True)]
    return [sum(values) / len(values) if values else None for values in known]


def _smooth(curve: Curve) -> list[float]:
    windows = [curve[end - WINDOW : end] for end in range(WINDOW, len(curve) + 1)]
    return [formulas.median([one for one in window if one is not None]) for window in windows if None not in window]


def _reward_to_reach(curves: Sequence[Curve]) -> float | None:
    smooth = [_smooth(curve) for curve in curves]
    if not smooth or not all(smooth):
        return None
    most, start = min(map(max, smooth)), max(curve[0] for curve in smooth)
    return start + SHARE * (most - start) if most > start else None


def _times_s(stored: StoredCase, reward: float) -> dict[int, float] | None:
    """Round -> seconds at its steady pace until it has the reward; None if one of them never has it."""
    found = {}
    for record in stored.completed:
        curve = _curve(record)
        ends = (end for end in range(WINDOW, len(curve) + 1) if None not in curve[end - WINDOW : end])
        needed = next((end for end in ends if _smooth(curve[end - WINDOW : end])[0] >= reward), None)
        if needed is None:
            return None
        found[record["round"]] = needed * stored.published_s[record["round"]]
    return found
