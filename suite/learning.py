"""Whether a run learned as its reference says. One-sided: what is faster but learns worse is no measurement. Pure."""

import statistics
from collections.abc import Sequence
from typing import Final

from suite.catalog import LearningReference
from suite.schema import Case, CheckResult

OVER: Final = 5  # iterations; the median of their rewards counts, one alone is noisy
NAME: Final = "learning"


def check_learning(case: Case, rewards: Sequence[float | None], reference: LearningReference | None) -> CheckResult:
    """Judge the rewards of rank 0, one for each iteration (None before an episode ended)."""
    if reference is None:
        return _result("not_checked", f"the catalog has no reference for {case.task} with {case.rl_library}")
    if len(rewards) < reference.iterations:
        return _result("not_checked", f"{len(rewards)} iterations; the reference is of {reference.iterations}")
    until = [reward for reward in rewards[: reference.iterations][-OVER:] if reward is not None]
    wanted = f"at least {reference.reward_at_least:g} is known of iteration {reference.iterations}"
    if not until:
        return _result("failure", f"no episode had ended; a reward of {wanted}", fault="learns_worse")
    reward = statistics.median(until)
    if reward < reference.reward_at_least:
        return _result("failure", f"the reward is {reward:g}; {wanted}", fault="learns_worse")
    return _result("ok", f"the reward is {reward:g}; {wanted}")


def _result(verdict: str, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=NAME, feature="learning", verdict=verdict, found=found, fault=fault)
