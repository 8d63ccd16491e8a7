"""Checks of a rank from outside: its GPU is the machine's, its physics dropped nothing, and the ranks learned."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from suite.files.wording import counted
from suite.matrix.catalog import load_catalog
from suite.records.learning_check import check_learning, mean_over_ranks
from suite.records.rank_file import RankFile
from suite.schema.record import Case, CheckResult, Environment

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
        rewards = mean_over_ranks([event.samples.get("reward_mean") for event in each.iterations] for each in files)
        checks.append(check_learning(case, rewards, references))
    return tuple(checks)


def check_messages(file: RankFile, run_dir: Path) -> CheckResult | None:
    """Judge the physics' messages in the rank's logs; None without any. Raises OSError if a log cannot be read."""
    names = Counter(name for log in rank_logs(file, run_dir) for name in _full_buffers(log))
    if not names:
        return None
    found = ", ".join(f"{name} ({counted(count, 'message')})" for name, count in names.most_common())
    return CheckResult(
        name="full buffers of the physics",
        feature="physics",
        verdict="failure",
        found=f"{found}: it went on without contacts or constraints; increase these sizes in env.sim.physics",
        fault=DROPPED,
    )


def rank_logs(file: RankFile, run_dir: Path) -> Iterator[Path]:
    """Yield what the rank's process wrote; several nodes have a folder each."""
    local_rank = file.start.local_rank if file.start else None
    node = file.start.node if file.start else None
    for log in sorted(run_dir.glob("logs/**/std*.log")):
        of_node = next((part for part in log.relative_to(run_dir).parts if part.startswith("node-")), None)
        if log.parent.name == str(local_rank) and of_node in (None, f"node-{node}"):
            yield log


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
