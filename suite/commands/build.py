"""Build an image, run env_check inside it, and name it only if it passes.

Two files describe the image: ``<name>.json`` (id, digest, labels and the report of env_check) and ``<name>.cdx.json``
(every package in it, CycloneDX).
"""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from suite import __version__
from suite.external.docker_engine import Engine
from suite.external.machine import git_state
from suite.files.paths import ROOT
from suite.launch.images.build import build_image
from suite.launch.images.table import IMAGES, plan_build
from suite.options.command_line import any_path, any_text, say

BUILT: Final = Path("containers/built")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", type=any_text, nargs="?", default="kitless", help=f"an image of {IMAGES} (default: kitless)"
    )
    parser.add_argument(
        "--out", type=any_path, metavar="DIR", help=f"folder for the two files of the image (default: {BUILT})"
    )
    parser.add_argument(
        "--network", choices=["host", "none"], help="network of the build's steps (default: the engine's own bridge)"
    )
    parser.add_argument(
        "--gpus", action="store_true", help="let env_check inside the image see the GPUs of the engine's host"
    )


def command(arguments: argparse.Namespace, console: Console) -> None:
    plan = plan_build(arguments.name, project_root=ROOT, version=__version__, git=git_state(ROOT), environ=os.environ)
    build_image(
        Engine.connect(),
        plan,
        out_dir=arguments.out or ROOT / BUILT,
        network=arguments.network,
        gpus="all" if arguments.gpus or "cuda" in plan.image.requires else None,
        on_line=partial(say, console),
    )
