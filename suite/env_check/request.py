"""What env_check is asked, what the stack that is asked for needs, and what a fault then means."""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self, get_args

from suite.env_check.check import Check, Feature
from suite.options.command_line import any_text
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
class Request:
    stack: Stack = "kitless"
    device: Device | None = None  # None: cuda where there is a GPU or what should drive one
    require: tuple[Feature, ...] = ()
    worker_python: Path | None = None
    worker_packages: tuple[str, ...] = ()

    def inside_image(self, worker_python: Path | None) -> Self:
        """Name the image's Python only where labscale, which does not install Isaac Sim, cannot find it itself."""
        return replace(self, worker_python=worker_python if self.stack == "isaacsim" else None)

    def arguments(self) -> tuple[str, ...]:
        """Arguments of a Python that has labscale, for a report as JSON."""
        return ("-m", "suite", "env_check", "--json", *self.options())

    def options(self) -> tuple[str, ...]:
        """What is asked, as command-line options."""
        argv = ["--stack", self.stack]
        if self.device:
            argv += ["--device", self.device]
        if self.require:
            argv += ["--require", ",".join(self.require)]
        if self.worker_python:
            argv += ["--worker-python", str(self.worker_python)]
        for package in self.worker_packages:
            argv += ["--worker-package", package]
        return tuple(argv)


def add_worker_package(parser: argparse.ArgumentParser) -> None:
    """The option as every command has it that runs or checks a worker."""
    parser.add_argument(
        "--worker-package", type=any_text, action="append", default=[], dest="worker_packages",
        metavar="PATH|REQUIREMENT",
        help="add this package to a worker environment of its own, such as an extension with tasks; repeatable",
    )  # fmt: skip


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

    def cover(self, check: Check) -> bool:
        return check.feature in self.features or check.name in self.checks


def needs(stack: Stack, *, device: Device, num_gpus: int, require: Collection[Feature] = ()) -> Needs:
    """Return what must work to run ``stack`` on ``device``, and what the user requires besides."""
    features = ALWAYS | frozenset(require)
    if device == "cuda":
        features |= ON_CUDA[stack] | (frozenset({"nccl"}) if num_gpus > 1 else frozenset())
    if features & {"cuda-graphs", "nccl", "rt-cores"}:
        features |= {"cuda"}
    return Needs(features=features, checks=SINGLE[stack] if device == "cuda" else frozenset())


def weigh(check: Check, needed: Needs) -> Check:
    """Turn a fault of something that is not needed into a remark."""
    if check.verdict in ("failure", "warning") and not needed.cover(check):
        return replace(check, verdict="not_needed")
    return check


def unproved(checks: Collection[Check], needed: Needs) -> tuple[Check, ...]:
    """Return the decisive checks of needed features that could not be made."""
    return tuple(
        check
        for check in checks
        if check.verdict == "not_checked"
        and check.feature in needed.features
        and DECISIVE.get(check.feature) == check.name
    )
