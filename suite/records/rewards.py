"""Rewards of a run over its iterations: the mean over processes, and the one at the end. Pure."""

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


def mean_rewards(record: RunRecord, column: str = "reward_mean") -> list[float | None]:
    """The reward of each iteration, see ``suite.records.checks.mean_over_ranks``; or what else a column has of it."""
    return mean_over_ranks(rank.samples.get(column, ()) for rank in record.ranks)


def last_reward(record: RunRecord) -> float | None:
    """The median of the last window; None unless every iteration in it has a reward."""
    rewards = [reward for reward in mean_rewards(record)[-SMOOTHING_WINDOW:] if reward is not None]
    return statistics.median(rewards) if len(rewards) == SMOOTHING_WINDOW else None
