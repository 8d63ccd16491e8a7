"""Defines the result of a check, and the types that the judging functions build it from.

A judging function has everything about its faults in one place: the word, what was found, and the repair.
"""

from dataclasses import dataclass
from typing import Any, Literal

# The parts of a machine that a stack may need. Every stack needs "host" and "worker".
Feature = Literal["host", "worker", "cuda", "cuda-graphs", "nccl", "egl", "vulkan", "rt-cores"]

# "not_needed": the check found a fault, but the requested stack does not use the feature. "not_checked": the check
# could not run, because something that it needs is missing; it never counts as good.
Verdict = Literal["ok", "warning", "failure", "not_needed", "not_checked"]

# 0: the stack can run. 1: it can, but there are warnings or a decisive check could not run. 2: it cannot.
ExitCode = Literal[0, 1, 2]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    verdict: Verdict
    found: str  # one line for a person
    wanted: str
    fault: str | None = None  # a stable word for programs and tests; None exactly for "ok" and "not_checked"
    repair: str | None = None  # the next step, with the command if there is one; None exactly if ``fault`` is
    evidence: Any  # what was read, with raw messages: a frozen dataclass, or its JSON

    def __post_init__(self) -> None:
        """Require a fault and a repair for each faulty verdict, and neither for the others.

        Raises:
            ValueError: verdict, fault and repair do not match.
        """
        is_faulty = self.verdict in ("warning", "failure", "not_needed")
        if is_faulty != (self.fault is not None) or is_faulty != (self.repair is not None):
            raise ValueError(f"verdict {self.verdict}, fault {self.fault}, repair {self.repair}")


@dataclass(frozen=True, kw_only=True)
class Check(Judgement):
    """A judgement with the name and the feature that ``suite.env_check.report.CHECKS`` gives it."""

    name: str  # snake_case, stable: "vulkan_manifests"
    feature: Feature


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault of the machine. The word is stable; texts may change."""

    word: str
    found: str
    repair: str
    verdict: Literal["warning", "failure"] = "failure"


@dataclass(frozen=True)
class Subject:
    """The requirement and the evidence of a check. Each method returns one outcome."""

    wanted: str
    evidence: Any

    def ok(self, found: str) -> Judgement:
        return Judgement(verdict="ok", found=found, wanted=self.wanted, evidence=self.evidence)

    def not_checked(self, found: str) -> Judgement:
        return Judgement(verdict="not_checked", found=found, wanted=self.wanted, evidence=self.evidence)

    def warning(self, word: str, found: str, repair: str) -> Judgement:
        return self.faulty(Fault(word=word, found=found, repair=repair, verdict="warning"))

    def failure(self, word: str, found: str, repair: str) -> Judgement:
        return self.faulty(Fault(word=word, found=found, repair=repair))

    def faulty(self, fault: Fault) -> Judgement:
        return Judgement(
            verdict=fault.verdict, found=fault.found, wanted=self.wanted, fault=fault.word, repair=fault.repair,
            evidence=self.evidence,
        )  # fmt: skip


def parts(version: str) -> tuple[int, ...]:
    """Split a version into numbers that compare: ``"580.65.06"`` gives ``(580, 65, 6)``."""
    return tuple(int(part) for part in version.split("."))
