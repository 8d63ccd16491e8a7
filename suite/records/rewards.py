"""Rewards of a run over its iterations: the mean over processes, smoothed, and the one at the end. Pure."""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.records.checks import mean_over_ranks
from suite.schema.record import RunRecord

# Iterations that a reward is the median of, the current one and those before, as in suite.records.checks. The
# libraries take the mean of a hundred episodes already, but one iteration may leap: when the first episodes of full
# length end, all that did not fail do so together.
SMOOTHING_WINDOW: Final = 5

type Rewards = Sequence[float | None]  # of each iteration; None before the first episode ended


def mean_rewards(record: RunRecord) -> list[float | None]:
    """The reward of each iteration, see ``suite.records.checks.mean_over_ranks``."""
    return mean_over_ranks(rank.samples.get("reward_mean", ()) for rank in record.ranks)


def smoothed(rewards: Rewards, window: int = SMOOTHING_WINDOW) -> list[float]:
    """The median of every window that is full and has a reward in every iteration, in their order."""
    windows = (rewards[end - window : end] for end in range(window, len(rewards) + 1))
    known = ([value for value in values if value is not None] for values in windows)
    return [statistics.median(values) for values in known if len(values) == window]


def last_reward(record: RunRecord) -> float | None:
    """The median of the last window; None unless every iteration in it has a reward."""
    curve = smoothed(mean_rewards(record)[-SMOOTHING_WINDOW:])
    return curve[0] if curve else None
