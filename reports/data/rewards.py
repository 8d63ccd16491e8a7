"""When a run has a reward, and which reward every run reaches. Pure."""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.records.rewards import SMOOTHING_WINDOW, Rewards, smoothed

CONVERGED_SHARE: Final = 0.9  # of a rise


def converged_reward(curves: Sequence[Rewards], share: float = CONVERGED_SHARE) -> float | None:
    """``share`` of the rise to the highest reward that every curve reached, from the highest that one began with.

    A curve that levels off reaches its own highest reward by chance: the noise of the level decides when. None where a
    curve has too few rewards, or began with as much: then nobody waits for it.
    """
    known = [smoothed(curve) for curve in curves]
    if not known or not all(known):
        return None
    most, start = min(map(max, known)), max(curve[0] for curve in known)
    return start + share * (most - start) if most > start else None


def iterations_to_reward(rewards: Rewards, reward: float, window: int = SMOOTHING_WINDOW) -> int | None:
    """Iterations until the median of the last ``window`` rewards is at least ``reward``; None if never.

    A window counts only when it is full and every iteration in it has a reward.
    """
    for end in range(window, len(rewards) + 1):
        values = [value for value in rewards[end - window : end] if value is not None]
        if len(values) == window and statistics.median(values) >= reward:
            return end
    return None
