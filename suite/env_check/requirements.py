"""What a stack needs of a machine, and what a fault then means."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from suite.env_check.check import Check, Feature
from suite.env_check.nodes.differences import NodeCheck
from suite.schema.record import Device, Stack

ALWAYS: Final[frozenset[Feature]] = frozenset({"host", "worker"})
ON_CUDA: Final[Mapping[Stack, frozenset[Feature]]] = {
    "kitless": frozenset({"cuda", "cuda-graphs"}),
    "ovphysx": frozenset({"cuda"}),
    "isaacsim": frozenset({"cuda", "vulkan", "rt-cores"}),
}
# Single checks of a feature that the stack does not need as a whole.
SINGLE: Final[Mapping[Stack, frozenset[str]]] = {
    "kitless": frozenset(),
    "ovphysx": frozenset({"libgl"}),
    "isaacsim": frozenset({"libgl", "egl_loader"}),
}
# The check that proves the feature: not looking at it is no success.
DECISIVE: Final[Mapping[Feature, str]] = {
    "cuda": "gpus_present",
    "cuda-graphs": "cuda_graphs",
    "nccl": "nccl_all_reduce",
    "egl": "egl_frame",
    "vulkan": "vulkan_frame",
    "rt-cores": "rt_cores",
}


@dataclass(frozen=True, kw_only=True)
class Needs:
    features: frozenset[Feature]
    checks: frozenset[str]  # single ones beyond those features

    @property
    def names(self) -> frozenset[str]:
        """All of it, as a report is sent."""
        return self.features | self.checks

    @classmethod
    def of(cls, names: Collection[str]) -> "Needs":
        """Take ``names`` apart again."""
        features = frozenset(feature for feature in get_args(Feature) if feature in names)
        return cls(features=features, checks=frozenset(names) - features)

    def cover(self, check: Check[Any]) -> bool:
        return check.feature in self.features or check.name in self.checks


def needs(stack: Stack, *, device: Device, num_gpus: int, require: Collection[Feature] = ()) -> Needs:
    """Return what must work to run ``stack`` on ``device``, and what the user requires besides."""
    features = ALWAYS | frozenset(require)
    if device == "cuda":
        features |= ON_CUDA[stack] | (frozenset({"nccl"}) if num_gpus > 1 else frozenset())
    if features & {"cuda-graphs", "nccl", "rt-cores"}:
        features |= {"cuda"}
    return Needs(features=features, checks=SINGLE[stack] if device == "cuda" else frozenset())


def weigh(check: Check[Any], needed: Needs) -> Check[Any]:
    """Turn a fault of something that is not needed into a remark."""
    if check.verdict in ("failure", "warning") and not needed.cover(check):
        return replace(check, verdict="not_needed")
    return check


def unproved[AnyCheck: (Check[Any], NodeCheck)](checks: Collection[AnyCheck], needed: Needs) -> tuple[AnyCheck, ...]:
    """Return the decisive checks of needed features that could not be made."""
    return tuple(
        check
        for check in checks
        if check.verdict == "not_checked"
        and check.feature in needed.features
        and DECISIVE.get(check.feature) == check.name
    )
