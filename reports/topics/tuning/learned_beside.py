"""What several ranks learn beside one that has the environments of all, and one stack beside another. Pure.

Seed by seed: both see as many frames and take as many optimiser steps. What ranks do not share, such as statistics or
networks that each trains alone, shows here, and what another engine's contacts do.
"""

import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis.learning_curves import learned_rounds, mean_rewards
from reports.analysis.seeds import Size
from suite.records.learning_check import reward_at
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, sum_of_means

MIN_SHARED_SEEDS: Final = 5  # all of one sign by chance once in 16 times; of 3, once in 4
MIN_ITERATIONS: Final = 20  # the first episodes' rewards say little of what is learned

STACK_ORDER: Final = ("kitless", "ovphysx", "isaacsim")

type Word = Literal["less", "more", "no sure difference", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Rewards by seed after so many iterations; a seed that ran again has its median."""

    base: Case  # of one of the seeds
    other: Case  # differs in one thing
    iterations: int
    base_rewards: Mapping[int, float]
    other_rewards: Mapping[int, float]

    @property
    def size(self) -> Size:
        return Size.of(self.base)

    @property
    def differences(self) -> tuple[float, ...]:
        """The other less the base, for every seed that both have."""
        shared = sorted(self.base_rewards.keys() & self.other_rewards.keys())
        return tuple(self.other_rewards[seed] - self.base_rewards[seed] for seed in shared)

    @property
    def difference(self) -> Estimate | None:
        """The mean over the seeds that both have; None where those are fewer than ``MIN_SHARED_SEEDS``."""
        if len(self.differences) < MIN_SHARED_SEEDS:
            return None
        return sum_of_means([self.differences])

    @property
    def verdict(self) -> Word:
        interval = self.difference.interval if self.difference else None
        if interval is None:
            return "unknown"
        if interval[0] <= 0 <= interval[1]:
            return "no sure difference"
        return "less" if interval[1] < 0 else "more"


def several_beside_one(results: Iterable[CaseResult]) -> tuple[Beside, ...]:
    """Every number of ranks beside one rank."""
    return _beside(
        results,
        like=lambda case: (Size.of(case)._replace(world_size=None), case.assets),
        place=lambda case: case.world_size - 1,
    )


def stacks_beside_newton(results: Iterable[CaseResult]) -> tuple[Beside, ...]:
    """Every other stack compared with Newton, on as many ranks."""
    return _beside(
        results,
        like=lambda case: (Size.of(case)._replace(stack=""), case.assets, case.world_size),
        place=lambda case: STACK_ORDER.index(case.stack),
    )


def _beside(
    results: Iterable[CaseResult], *, like: Callable[[Case], Hashable], place: Callable[[Case], int]
) -> tuple[Beside, ...]:
    """Of closed cases that train, wherever they ran: what is learned goes with the seed and not with the pace.

    ``place`` of the base is 0.
    """
    groups: dict[Hashable, dict[int, list[CaseResult]]] = {}
    for result in results:
        if learned_rounds(result) and result.case.learns and result.case.division == "closed":
            groups.setdefault(like(result.case), {}).setdefault(place(result.case), []).append(result)
    pairs = (
        _pair(group[0], other)
        for group in groups.values()
        for at, other in sorted(group.items())
        if at > 0 and 0 in group
    )
    return tuple(pair for pair in pairs if pair is not None)


def _pair(base: list[CaseResult], other: list[CaseResult]) -> Beside | None:
    """At the iteration that most seeds of both reached, the last of several; None where either has no rewards."""
    lengths = {result.case.iterations for result in (*base, *other) if result.case.iterations >= MIN_ITERATIONS}
    found = [
        Beside(
            base=base[0].case,
            other=other[0].case,
            iterations=iterations,
            base_rewards=_by_seed(base, iterations),
            other_rewards=_by_seed(other, iterations),
        )
        for iterations in sorted(lengths)
    ]
    known = [pair for pair in found if pair.base_rewards and pair.other_rewards]
    return max(known, key=lambda pair: (len(pair.differences), pair.iterations), default=None)


def _by_seed(results: Iterable[CaseResult], iterations: int) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for result in results:
        for record in learned_rounds(result):
            rewards = mean_rewards(record)
            reward = reward_at(rewards, iterations) if len(rewards) >= iterations else None
            if reward is not None:
                found.setdefault(result.case.seed_of(rank=0, round_index=record.round), []).append(reward)
    return {seed: statistics.median(of_seed) for seed, of_seed in sorted(found.items())}
