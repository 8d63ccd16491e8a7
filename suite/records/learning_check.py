"""Whether a run learned at least as well as its reference: a faster run that learns worse is no measurement. Pure.

The reward of an iteration is the mean over ranks, here and wherever a reward is shown.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from suite.files.wording import counted
from suite.matrix.catalog import LearningReference
from suite.schema.record import Case, CheckResult, RunRecord

OVER: Final = 5  # iterations; the median of their rewards counts, because a single one is noisy
NAME: Final = "learning"
LEARNS_WORSE: Final = "learns_worse"
REFERENCE_ASSETS: Final = "offline"  # of all reference runs; other robots learn differently


def check_learning(case: Case, rewards: Sequence[float | None], references: Sequence[LearningReference]) -> CheckResult:
    """Judge the rewards of all iterations, as ``mean_over_ranks`` returns them."""
    reference = _reference_of(case, len(rewards), references)
    if isinstance(reference, str):
        return _result("not_checked", reference)
    wanted = f"at least {reference.reward_at_least:g} is known of iteration {reference.iterations}"
    reward = reward_at(rewards, reference.iterations)
    if reward is None:
        return _result("failure", f"no episode had ended; a reward of {wanted}", fault=LEARNS_WORSE)
    if reward < reference.reward_at_least:
        return _result("failure", f"the reward is {reward:g}; {wanted}", fault=LEARNS_WORSE)
    return _result("ok", f"the reward is {reward:g}; {wanted}")


def _reference_of(case: Case, num_iterations: int, references: Sequence[LearningReference]) -> LearningReference | str:
    """Return the reference of the case's stack and size for the latest iteration reached, or why there is none."""
    if not case.learns:
        return "nothing learns in a control"
    if case.assets != REFERENCE_ASSETS:
        return f"references are of {REFERENCE_ASSETS} assets, and these are {case.assets}"
    of_stack = [entry for entry in references if entry.stack == case.stack]
    if not of_stack:
        return f"the catalog has no reference for {case.task} with {case.rl_library} on the stack {case.stack}"
    size = (case.frames_per_iteration, case.optimiser_steps)
    of_size = [entry for entry in of_stack if (entry.frames_per_iteration, entry.optimiser_steps) == size]
    of_ranks = [entry for entry in of_size if entry.world_size in (None, case.world_size)]
    if not of_ranks:
        ranks = f" on {counted(case.world_size, 'rank')}" if of_size else ""
        steps = counted(case.optimiser_steps, "optimiser step")
        return f"the catalog has no reference for {size[0]} frames and {steps} in an iteration{ranks}"
    reached = [entry for entry in of_ranks if entry.iterations <= num_iterations]
    if not reached:
        return (
            f"{counted(num_iterations, 'iteration')}; the reference is of {min(entry.iterations for entry in of_ranks)}"
        )
    return max(reached, key=lambda entry: entry.iterations)


def mean_over_ranks(columns: Iterable[Sequence[float | None]]) -> list[float | None]:
    """Average over ``columns``, the rewards of each rank's iterations; None before the first episode of any rank ended.

    Ranks without rewards are left out: with rsl_rl only rank 0 has some.
    """
    kept = filter(None, columns)  # a rank without the column would leave no iteration
    per_iteration = ([value for value in values if value is not None] for values in zip(*kept, strict=False))
    return [statistics.fmean(rewards) if rewards else None for rewards in per_iteration]


def reward_at(rewards: Sequence[float | None], iterations: int) -> float | None:
    """Median of the last few rewards of this many iterations; None if no episode ended in them."""
    until = [reward for reward in rewards[:iterations][-OVER:] if reward is not None]
    return statistics.median(until) if until else None


def only_learned_less(record: RunRecord) -> bool:
    """Whether a round would be a measurement, had it learned as its reference says."""
    failed = {check.name for rank in record.ranks for check in rank.validity if check.verdict == "failure"}
    digests = {rank.parameters_sha256 for rank in record.ranks} - {None}
    # A record's reason is its first fault. Those of the ranks' checks come last, before unlike parameters.
    is_said = record.outcome == "invalid" and (record.reason or "").endswith(f"({LEARNS_WORSE})")
    return is_said and failed == {NAME} and len(digests) <= 1 and not record.profiled_ranks


def _result(verdict: Literal["ok", "failure", "not_checked"], found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=NAME, feature="learning", verdict=verdict, found=found, fault=fault)
