"""When a run has a reward, and which reward every run reaches. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.records.rewards import Rewards

CONVERGED_SHARE: Final = 0.9  # of a rise
LEARNED_SUCCESS: Final = 0.5  # of episodes at the end: a training with less has not learned its task
LEAST_RISE: Final = 1e-9  # of the largest reward: less is an error of rounding


@dataclass(frozen=True)
class Levels:
    """Rewards of a run over its iterations, each the mean over the iterations of an episode of full length.

    Environments that began together end their episodes together, those that failed excepted: a reward of the library
    leaps then, and falls until the next time.
    """

    window: int  # iterations
    rewards: Rewards  # of windows, each an iteration later than the one before; None where one has no reward

    @classmethod
    def of(cls, rewards: Rewards, window: int) -> "Levels":
        """The levels of the rewards of all iterations; none of a run that is shorter than the window."""
        windows = (rewards[end - window : end] for end in range(window, len(rewards) + 1))
        known = ([value for value in values if value is not None] for values in windows)
        return cls(window, [statistics.fmean(values) if len(values) == window else None for values in known])

    def iterations_to(self, reward: float) -> float | None:
        """Iterations until the middle of the first window that has the reward, between two of them; None if none has.

        The part of an iteration keeps runs that need nearly the same from being equal, as if they did not vary.
        """
        before = None
        for index, level in enumerate(self.rewards):
            if level is not None and level >= reward:
                short = 0.0 if before is None else (level - reward) / (level - before)
                return (self.window + 1) / 2 + index - short
            before = level
        return None

    def largest_difference(self, other: "Levels") -> float | None:
        """The largest difference in an iteration of both, over the rise of ``other``; None if they have none."""
        both = zip(self.rewards, other.rewards, strict=False)
        differences = [abs(own - level) for own, level in both if own is not None and level is not None]
        known = [level for level in other.rewards if level is not None]
        if not differences:
            return None
        rise = max(known) - min(known)
        return max(differences) / rise if rise > LEAST_RISE * max(map(abs, known)) else None


def converged_reward(curves: Sequence[Levels], share: float = CONVERGED_SHARE) -> float | None:
    """``share`` of the rise to the highest reward that every curve reached, from the highest that one began with.

    A curve that levels off reaches its own highest reward by chance: the noise of the level decides when. None where a
    curve has no level, or began with as much: then nobody waits for it.
    """
    known = [[level for level in curve.rewards if level is not None] for curve in curves]
    if not known or not all(known):
        return None
    most, start = min(map(max, known)), max(levels[0] for levels in known)
    return start + share * (most - start) if most > start else None
