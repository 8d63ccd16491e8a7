"""What runs the cases: device, stack, assets and the worker."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from suite.options.types import package, seed
from suite.schema.record import Assets, Device, Stack


@dataclass(frozen=True, kw_only=True)
class Setup:
    stack: Stack | None = None
    device: Device | None = None
    assets: Assets = "offline"
    seed: int | None = None
    worker_python: Path | None = None
    worker_packages: tuple[str, ...] = ()  # added to the worker: paths and requirements
    with_packages: tuple[str, ...] = ()  # ``name==version`` for every case, over the worker's pins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all but those of the worker, see ``suite.env_check.request``."""
    parser.add_argument("--stack", choices=get_args(Stack), help="physics and renderer (default: the matrix's)")
    parser.add_argument(
        "--device", choices=get_args(Device), help="where the ranks run (default: cuda if there is a GPU, else cpu)"
    )
    parser.add_argument(
        "--assets",
        choices=get_args(Assets),
        default="offline",
        help="offline: labscale builds them; official: NVIDIA's (default: offline)",
    )
    parser.add_argument("--seed", type=seed, help="seed of rank 0 (default: the matrix's)")
    parser.add_argument(
        "--with",
        type=package,
        action="append",
        dest="with_packages",
        metavar="NAME==VERSION",
        help="every configuration with this version of a package, in an environment of its own; give it once for each",
    )
