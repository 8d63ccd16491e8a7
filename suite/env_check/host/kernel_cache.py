"""Checks Warp's cache of compiled kernels: every run fails that needs a damaged module."""

from dataclasses import dataclass
from pathlib import Path

from suite.env_check.check import Judgement, Subject
from suite.files.wording import counted
from suite.install import damage


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    cache_dir: str
    num_modules: int
    damaged: tuple[str, ...]  # what is wrong with each damaged module


def read(cache_dir: Path) -> KernelFacts:
    return KernelFacts(
        cache_dir=str(cache_dir),
        num_modules=sum(1 for _ in damage.modules(cache_dir)),
        damaged=tuple(module.problem for module in damage.damaged_modules(cache_dir)),
    )


def judge_kernel_cache(facts: KernelFacts) -> Judgement:
    subject = Subject("no file that is cut short", facts)
    if facts.damaged:
        return subject.warning(
            "kernel_cache_damaged",
            f"{counted(len(facts.damaged), 'damaged module')} in {facts.cache_dir}: {facts.damaged[0]}",
            f"Run bench: it moves them away and compiles them again. Or remove {facts.cache_dir}.",
        )
    return subject.ok(f"every file in {facts.cache_dir} is whole" if facts.num_modules else "nothing compiled yet")
