"""What env_check is asked, as a value, and as the arguments that ask an image or another machine the same."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from suite.env_check.check import Feature
from suite.options.command_line import any_text
from suite.schema.record import Device, Stack


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
