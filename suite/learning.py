"""Whether a run learned as its reference says. One-sided: what is faster but learns worse is no measurement. Pure."""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.catalog import LearningReference
from suite.schema import Case, CheckResult

OVER: Final = 5  # iterations; the median of their rewards counts, one alone is noisy
NAME: Final = "learning"


def check_learning(case: Case, rewards: Sequence[float | None], references: Sequence[LearningReference]) -> CheckResult:
    """Judge the rewards of rank 0, one for each iteration (None before an episode ended).

    By the reference of the case's size; of several, the one of the latest iteration that the rewards reach.
    """
    if not references:
        return _result("not_checked", f"the catalog has no reference for {case.task} with {case.rl_library}")
    size = (case.frames_per_iteration, case.optimiser_steps)
    of_size = [entry for entry in references if (entry.frames_per_iteration, entry.optimiser_steps) == size]
    if not of_size:
        return _result(
            "not_checked",
            f"the catalog has no reference for {size[0]} frames and {size[1]} optimiser steps in an iteration",
        )
    reached = [entry for entry in of_size if entry.iterations <= len(rewards)]
    if not reached:
        first = min(entry.iterations for entry in of_size)
        return _result("not_checked", f"{len(rewards)} iterations; the reference is of {first}")
    reference = max(reached, key=lambda entry: entry.iterations)
    wanted = f"at least {reference.reward_at_least:g} is known of iteration {reference.iterations}"
    reward = reward_at(rewards, reference.iterations)
    if reward is None:
        return _result("failure", f"no episode had ended; a reward of {wanted}", fault="learns_worse")
    if reward < reference.reward_at_least:
        return _result("failure", f"the reward is {reward:g}; {wanted}", fault="learns_worse")
    return _result("ok", f"the reward is {reward:g}; {wanted}")


def reward_at(rewards: Sequence[float | None], iterations: int) -> float | None:
    """The median of the last few rewards of so many iterations; None where no episode had ended in them."""
    until = [reward for reward in rewards[:iterations][-OVER:] if reward is not None]
    return statistics.median(until) if until else None


def _result(verdict: str, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=NAME, feature="learning", verdict=verdict, found=found, fault=fault)
