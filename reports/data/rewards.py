"""Rewards of a run over its iterations: the mean over processes, smoothed, and when a reward is reached. Pure."""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.records.checks import mean_over_ranks
from suite.schema.record import RunRecord

# Iterations that a reward is the median of, the current one and those before, as in suite.records.checks. The
# libraries take the mean of a hundred episodes already, but one iteration may leap: when the first episodes of full
# length end, all that did not fail do so together.
SMOOTHING_WINDOW: Final = 5
CONVERGED_SHARE: Final = 0.9  # of a rise

type Rewards = Sequence[float | None]  # of each iteration; None before the first episode ended


def mean_rewards(record: RunRecord) -> list[float | None]:
    """Per iteration, as ``suite.records.checks.mean_over_ranks``."""
    return mean_over_ranks(rank.samples.get("reward_mean", ()) for rank in record.ranks)


def smoothed(rewards: Rewards, window: int = SMOOTHING_WINDOW) -> list[float]:
    """The median of every window that is full and has a reward in every iteration, in their order."""
    windows = (rewards[end - window : end] for end in range(window, len(rewards) + 1))
    known = ([value for value in values if value is not None] for values in windows)
    return [statistics.median(values) for values in known if len(values) == window]


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
