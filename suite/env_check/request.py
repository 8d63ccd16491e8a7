"""Defines a request to env_check, the features that its stack needs, and how much a fault then matters."""

import argparse
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self, get_args

from suite.env_check.check import Check, Feature
from suite.install.bundle_contents import is_bundled
from suite.options.command_line import any_path, any_text
from suite.options.declaration import option
from suite.schema.record import Device, Stack

# What each stack needs on a GPU: features, and single checks of a feature that it does not need as a whole.
ON_CUDA: Final[Mapping[Stack, frozenset[str]]] = {
    "kitless": frozenset({"cuda", "cuda-graphs"}),
    "ovphysx": frozenset({"cuda", "libgl"}),
    "isaacsim": frozenset({"cuda", "vulkan", "rt-cores", "libgl"}),
}
# The check that proves the feature. If it could not run, the feature is unproved.
DECISIVE: Final[Mapping[Feature, str]] = {
    "cuda": "gpus_present",
    "cuda-graphs": "cuda_graphs",
    "nccl": "nccl_all_reduce",
    "egl": "egl_frame",
    "vulkan": "vulkan_frame",
    "rt-cores": "rt_cores",
}
REQUIRABLE: Final = tuple(feature for feature in get_args(Feature) if feature not in ("host", "worker"))


def features(text: str) -> tuple[Feature, ...]:
    """``"cuda,vulkan"`` as features."""
    asked = tuple(part.strip() for part in text.split(","))
    if unknown := [part for part in asked if part not in REQUIRABLE]:
        raise argparse.ArgumentTypeError(f"got {', '.join(map(repr, unknown))}, allowed are {', '.join(REQUIRABLE)}")
    return tuple(feature for feature in REQUIRABLE if feature in asked)


@dataclass(frozen=True, kw_only=True)
class Request:
    stack: Stack = option(
        "physics and renderer to check for (default: kitless)", default="kitless", choices=get_args(Stack)
    )
    device: Device | None = option(
        "where the stack is to run (default: cuda if there is a GPU or a driver, else cpu)", choices=get_args(Device)
    )
    require: tuple[Feature, ...] = option(
        f"require these features too: {', '.join(REQUIRABLE)}", default=(), type=features, metavar="FEATURE[,…]"
    )
    everything: bool = option(
        "render through EGL and Vulkan only if the stack or --require needs it, as `bench` does",
        default=True,
        flag="--only-needed",
        action="store_false",
    )
    worker_python: Path | None = None
    worker_packages: tuple[str, ...] = ()
    other_workers: tuple[Path, ...] = ()  # Pythons here, of cases that need a worker for themselves

    def inside_image(self, worker_python: Path | None) -> Self:
        """Return this request for use in an image.

        It names the image's Python only for Isaac Sim, which labscale does not install and so cannot find itself.
        """
        return replace(self, worker_python=worker_python if self.stack == "isaacsim" else None)

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments that make a Python with labscale print a report as JSON."""
        only_needed = () if self.everything else ("--only-needed",)
        return ("-m", "suite", "env_check", "--json", *self.options(), *only_needed)

    def options(self) -> tuple[str, ...]:
        """Return this request as command-line options."""
        argv = ["--stack", self.stack]
        required = ",".join(self.require)
        settings = (("--device", self.device), ("--require", required), ("--worker-python", self.worker_python))
        for flag, value in settings:
            if value:
                argv += [flag, str(value)]
        for package in self.worker_packages:
            argv += ["--worker-package", package]
        return tuple(argv)


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command shares that runs or checks a worker. On a host with a bundle, its Python is the worker."""
    parser.add_argument(
        "--worker-python",
        type=_worker_python,
        default=Path(sys.executable) if is_bundled() else None,
        metavar="PATH",
        help="use this Python, which has Isaac Lab, and install none",
    )
    parser.add_argument(
        "--worker-package", type=any_text, action="append", default=[], dest="worker_packages",
        metavar="PATH|REQUIREMENT",
        help="add this package to a worker environment of its own, such as an extension with tasks; repeatable",
    )  # fmt: skip


def _worker_python(given: str) -> Path:
    """Any Python, but with a bundle only the bundle's: another one would find the bundle's packages, not its own."""
    python = any_path(given)
    if is_bundled() and Path(shutil.which(python) or python).absolute() != Path(sys.executable):
        raise argparse.ArgumentTypeError(
            f"got {given!r}, allowed is {sys.executable}, for which this bundle was installed; leave it out, or install"
            " the bundle into another folder for that Python (install.py --python PATH)"
        )
    return python


def needs(stack: Stack, *, device: Device, num_gpus: int, require: Collection[Feature] = ()) -> frozenset[str]:
    """Return what must work to run ``stack`` on ``device``: features, also those required, and single checks."""
    needed: set[str] = {"host", "worker", *require}
    if device == "cuda":
        needed |= ON_CUDA[stack] | ({"nccl"} if num_gpus > 1 else set())
    if needed & {"cuda-graphs", "nccl", "rt-cores"}:
        needed.add("cuda")
    if "vulkan" in needed:
        needed.add("egl_loader")  # NVIDIA's Vulkan driver does not start without libEGL
    return frozenset(needed)


def is_needed(check: Check, needed: Collection[str]) -> bool:
    return check.feature in needed or check.name in needed


def weigh(check: Check, needed: Collection[str]) -> Check:
    """Mark a fault as "not_needed" if the stack does not need the check."""
    if check.verdict in ("failure", "warning") and not is_needed(check, needed):
        return replace(check, verdict="not_needed")
    return check


def unproved(checks: Collection[Check], needed: Collection[str]) -> tuple[Check, ...]:
    """Return the decisive checks of needed features that could not run."""
    return tuple(
        check
        for check in checks
        if check.verdict == "not_checked" and check.feature in needed and DECISIVE.get(check.feature) == check.name
    )
