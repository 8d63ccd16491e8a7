"""What one check says: found, wanted, verdict, repair, evidence."""

from dataclasses import dataclass
from typing import Literal

# What a stack may need. "host" and "worker" are needed always.
Feature = Literal["host", "worker", "cuda", "cuda-graphs", "nccl", "egl", "vulkan", "rt-cores"]

# "not_needed": there is a fault, but the stack asked for does not use the feature. "not_checked": it could not be
# looked at, because what comes before it is missing; never counted as good.
Verdict = Literal["ok", "warning", "failure", "not_needed", "not_checked"]

# 0: the stack can run. 1: it can, with warnings or something unproved. 2: it cannot.
ExitCode = Literal[0, 1, 2]


@dataclass(frozen=True, kw_only=True)
class Check[Evidence]:
    """The result of one check.

    ``fault`` names what is wrong, one stable word per fault, for programs and tests; texts may change. ``evidence`` is
    the check's own frozen dataclass of plain values (JSON after ``dataclasses.asdict``): what was seen, raw messages
    included.
    """

    name: str  # snake_case, stable: "vulkan_manifests"
    feature: Feature
    verdict: Verdict
    found: str  # one line a person reads
    wanted: str
    fault: str | None = None  # None exactly when the verdict is "ok" or "not_checked"
    repair: str | None = None  # the next step, with the command where there is one; None exactly when there is no fault
    evidence: Evidence

    def __post_init__(self) -> None:
        """Refuse a fault without a repair, and a verdict that says nothing.

        Raises:
            ValueError: verdict, fault and repair do not belong together.
        """
        is_faulty = self.verdict in ("warning", "failure", "not_needed")
        if is_faulty != (self.fault is not None) or is_faulty != (self.repair is not None):
            raise ValueError(f"{self.name}: verdict {self.verdict}, fault {self.fault}, repair {self.repair}")
