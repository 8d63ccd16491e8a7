"""What several ranks learn beside one rank that has the environments of all, seed by seed. Pure.

Both see as many frames and take as many optimiser steps. What ranks do not share, such as statistics or networks that
each trains alone, shows here.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from reports.learning_curves import mean_rewards
from reports.resampling import Estimate, median_interval
from reports.seeds import Size
from suite.learning import reward_at
from suite.schema import Assets, CaseResult

MIN_SHARED_SEEDS: Final = 5  # all of one sign by chance once in 16 times; of 3, once in 4
MIN_ITERATIONS: Final = 20  # the first episodes' rewards say little of what is learned

type Word = Literal["less", "more", "not told apart", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Rewards by seed after so many iterations, on one rank and on several; a seed that ran again has its median."""

    size: Size  # on any number of ranks
    iterations: int
    world_size: int  # of the several
    alone: Mapping[int, float]
    together: Mapping[int, float]

    @property
    def differences(self) -> tuple[float, ...]:
        """Several ranks less one, for every seed that both have."""
        return tuple(
            self.together[seed] - self.alone[seed] for seed in sorted(self.alone.keys() & self.together.keys())
        )

    @property
    def difference(self) -> Estimate | None:
        """The median over the seeds that both have; None where those are fewer than ``MIN_SHARED_SEEDS``."""
        if len(self.differences) < MIN_SHARED_SEEDS:
            return None
        return Estimate(value=statistics.median(self.differences), interval=median_interval(self.differences))

    @property
    def verdict(self) -> Word:
        interval = self.difference.interval if self.difference else None
        if interval is None:
            return "unknown"
        if interval[0] <= 0 <= interval[1]:
            return "not told apart"
        return "less" if interval[1] < 0 else "more"


def several_beside_one(results: Iterable[CaseResult]) -> tuple[Beside, ...]:
    """Of closed cases that train, wherever they ran: what is learned goes with the seed and not with the pace."""
    runs: dict[tuple[Size, Assets], dict[int, list[CaseResult]]] = {}
    for result in results:
        if result.completed and result.case.learns and result.case.division == "closed":
            size = Size.of(result.case)._replace(world_size=None)
            of_ranks = runs.setdefault((size, result.case.assets), {})
            of_ranks.setdefault(result.case.world_size, []).append(result)
    pairs = (
        _beside(size, world_size, of_ranks[1], several)
        for (size, _), of_ranks in runs.items()
        for world_size, several in sorted(of_ranks.items())
        if world_size > 1 and 1 in of_ranks
    )
    return tuple(pair for pair in pairs if pair is not None)


def _beside(size: Size, world_size: int, alone: list[CaseResult], together: list[CaseResult]) -> Beside | None:
    """At the iteration that most seeds of both reached, the last of several; None where either has no rewards."""
    lengths = {result.case.iterations for result in (*alone, *together) if result.case.iterations >= MIN_ITERATIONS}
    found = [
        Beside(
            size=size,
            iterations=iterations,
            world_size=world_size,
            alone=_by_seed(alone, iterations),
            together=_by_seed(together, iterations),
        )
        for iterations in sorted(lengths)
    ]
    known = [pair for pair in found if pair.alone and pair.together]
    return max(known, key=lambda pair: (len(pair.differences), pair.iterations), default=None)


def _by_seed(results: Iterable[CaseResult], iterations: int) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for result in results:
        for record in result.completed:
            rewards = mean_rewards(record)
            reward = reward_at(rewards, iterations) if len(rewards) >= iterations else None
            if reward is not None:
                found.setdefault(result.case.seed, []).append(reward)
    return {seed: statistics.median(of_seed) for seed, of_seed in sorted(found.items())}
