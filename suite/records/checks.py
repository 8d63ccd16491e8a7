"""Checks of a rank from outside: its GPU is the machine's, its physics dropped nothing, and the ranks learned.

A faster run that learns worse than its reference is no measurement. The reward of an iteration is the mean over ranks,
here and wherever a reward is shown.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from suite.files.wording import counted
from suite.matrix.catalog import LearningReference, load_catalog
from suite.records.rank_file import RankFile, rank_logs
from suite.schema.record import Case, CheckResult, Environment, RunRecord

OTHER_GPU: Final = "gpu_not_of_this_machine"
DROPPED: Final = "contacts_or_constraints_dropped"
# PhysX and Newton's own collision detection go on without what a full buffer does not take, and only write this. They
# name the buffer at most steps, so a log may have millions of such lines.
_FULL: Final = re.compile(
    r"increase (?:the )?(Px\w+Config::\w+)"  # … to 1024, otherwise, the simulation will miss interactions
    r"|(Px\w+Config::\w+) buffer overflow"
    r"|((?:[\w-]+ ){1,4}buffer) overflow(?:ed \d+ >| detected)"
    r"|(collision stack) overflow"
    r"|(PxSceneDesc::maxNb\w+) - ran out of buffer space"
    r"|(allocate more than 16K of \w+ data)"
    r"|(contact reduction hashtable) insert failures"
    r"|Newton contacts \(\d+\) exceeded MJWarp limit \(\d+\)\. Increase (nconmax)"
    r"|(simulation will miss interactions)",
    re.IGNORECASE,
)


def checks_from_outside(
    run_dir: Path, case: Case, environment: Environment, file: RankFile, files: Sequence[RankFile]
) -> tuple[CheckResult, ...]:
    """Check a rank; what all ranks learned is a check of rank 0. Raises OSError if a log cannot be read."""
    checks = [*filter(None, (check_gpu(file, environment), check_messages(file, run_dir)))]
    if file.rank == 0 and file.iterations:
        references = load_catalog().learning_references(case.task, case.rl_library)
        rewards = mean_over_ranks([event.samples.get("reward_mean") for event in other.iterations] for other in files)
        checks.append(check_learning(case, rewards, references))
    return tuple(checks)


def check_messages(file: RankFile, run_dir: Path) -> CheckResult | None:
    """Judge the physics' messages in the rank's logs; None without any. Raises OSError if a log cannot be read."""
    names = Counter(name for log in rank_logs(file, run_dir) for name in _full_buffers(log))
    if not names:
        return None
    buffers = ", ".join(f"{name} ({counted(count, 'message')})" for name, count in names.most_common())
    found = f"{buffers}: it went on without contacts or constraints; increase these sizes in env.sim.physics"
    return CheckResult(
        name="full buffers of the physics", feature="physics", verdict="failure", found=found, fault=DROPPED
    )


def _full_buffers(log: Path) -> Iterator[str]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _FULL.search(line):
                yield next(filter(None, match.groups()))


def check_gpu(file: RankFile, environment: Environment) -> CheckResult | None:
    """Judge whether the rank's GPU is one of the machine's; None if it is, or if either is not known."""
    name = file.settings.get("gpu_name")
    models = Counter(gpu.name for gpu in environment.gpus)
    if not isinstance(name, str) or not models or any(_is_model(name, model) for model in models):
        return None
    has = ", ".join(f"{count} x {model}" for model, count in models.items())
    found = f"it ran on {name}, and the machine that was described has {has}; run on one kind of node"
    return CheckResult(name="model of the GPU", feature="gpus", verdict="failure", found=found, fault=OTHER_GPU)


def _is_model(name: str, model: str) -> bool:
    """Whether CUDA's ``name`` is NVML's ``model``; a MIG instance's name has its size too."""
    return f"{name} MIG ".removeprefix("NVIDIA ").startswith(f"{model} MIG ".removeprefix("NVIDIA "))


# ---- learning ----


OVER: Final = 5  # iterations; the median of their rewards counts, because a single one is noisy
LEARNING: Final = "learning"
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
    if case.only_learning:  # a seed that learns badly is a result
        return "what it learns is what is measured"
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
    of_ranks.sort(key=lambda entry: entry.iterations)
    reached = [entry for entry in of_ranks if entry.iterations <= num_iterations]
    return (
        reached[-1]
        if reached
        else f"{counted(num_iterations, 'iteration')}; the reference is of {of_ranks[0].iterations}"
    )


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
    is_named = record.outcome == "invalid" and (record.reason or "").endswith(f"({LEARNS_WORSE})")
    return is_named and failed == {LEARNING} and len(digests) <= 1 and not record.profiled_ranks


def _result(verdict: Literal["ok", "failure", "not_checked"], found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=LEARNING, feature="learning", verdict=verdict, found=found, fault=fault)
