"""The commands ``build`` and ``bundle``: labscale as a container image, or for a machine without internet."""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Final, get_args

from rich.console import Console

from suite import __version__
from suite.commands import Command
from suite.external.docker_engine import Engine
from suite.external.machine import git_state
from suite.files.paths import ROOT
from suite.install import bundle, bundle_contents
from suite.install.bundle_contents import Versions, install_sets
from suite.install.worker import provision_worker
from suite.launch.images.build import build_image
from suite.launch.images.table import IMAGES, plan_build
from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.own_worker import own_worker_of
from suite.matrix.selection import on_nodes_of
from suite.options.command_line import any_path, any_text, say
from suite.options.options import Setup
from suite.options.types import positive
from suite.schema.record import Device, Stack

BUILT: Final = Path("containers/built")


def _add_build_options(parser: argparse.ArgumentParser) -> None:
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


def _build(arguments: argparse.Namespace, console: Console) -> None:
    plan = plan_build(arguments.name, project_root=ROOT, version=__version__, git=git_state(ROOT), environ=os.environ)
    build_image(
        Engine.connect(),
        plan,
        out_dir=arguments.out or ROOT / BUILT,
        network=arguments.network,
        gpus="all" if arguments.gpus or "cuda" in plan.image.requires else None,
        on_line=partial(say, console),
    )


def _add_bundle_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=any_path, required=True, metavar="DIR", help="folder for the parts; new or empty")
    parser.add_argument(
        "--part-size-mib",
        type=positive,
        default=bundle.PART_SIZE_MIB,
        metavar="N",
        help=f"largest part in MiB (default: {bundle.PART_SIZE_MIB})",
    )
    parser.add_argument(
        "--target-has", type=any_path, metavar="FILE",
        help="leave out the packages that the target has; FILE is what `python3 -m pip freeze --all` prints there, "
        "with the Python that will run labscale (default: pack everything, about 6 GB)",
    )  # fmt: skip
    parser.add_argument(
        "--stack", choices=get_args(Stack), default="kitless", help="physics and renderer (default: kitless)"
    )
    parser.add_argument(
        "--device", choices=get_args(Device), default="cuda", help="the target's device (default: cuda)"
    )
    parser.add_argument(
        "--matrix", type=any_text, metavar="NAME|FILE",
        help="pack the other versions of packages that this matrix asks for too, as releases does (default: none)",
    )  # fmt: skip
    parser.add_argument("--worker-python", type=any_path, metavar="PATH", help="pack the packages of this Python")


def _make_bundle(arguments: argparse.Namespace, console: Console) -> None:
    """Provision the worker here, then pack what the target lacks."""
    on_message = partial(say, console)
    # Read first: what is refused should not cost an installation.
    target = bundle_contents.read_freeze(arguments.target_has) if arguments.target_has else {}
    sets = versions_of(arguments.matrix, arguments.device) if arguments.matrix else []
    setup = Setup(worker_python=arguments.worker_python)
    worker = provision_worker(stack=arguments.stack, setup=setup, on_message=on_message)
    bundle.make_bundle(
        project_root=ROOT,
        worker=worker,
        out_dir=arguments.out,
        part_size_mib=arguments.part_size_mib,
        target=target,
        stack=arguments.stack,
        for_device=arguments.device,
        versions=install_sets(worker.python, sets, on_message=on_message),
        on_message=on_message,
    )


def versions_of(name_or_path: str, device: Device) -> list[Versions]:
    """Return the distinct sets of versions of a matrix, of cases that run with the packed worker's pins.

    Raises MatrixError if it is not valid.
    """
    catalog = load_catalog()
    matrix = on_nodes_of(load_matrix(name_or_path, catalog), ranks_per_node=1)  # versions do not depend on it
    own_workers = map(own_worker_of, expand(matrix, catalog, device=device, assets="offline"))
    return list(dict.fromkeys(own.packages for own in own_workers if own and own.packages and own.pins is None))


BUILD_COMMAND: Final = Command(
    summary="build a container image",
    description="""Build an image, run env_check inside it, and name it only if it passes.

Two files describe the image: `<name>.json` (id, digest, labels and the report of env_check) and `<name>.cdx.json`
(every package in it, CycloneDX).
""",
    add_arguments=_add_build_options,
    run=_build,
)
BUNDLE_COMMAND: Final = Command(
    summary="pack labscale for a machine without internet",
    description="Pack labscale for a machine without internet: worker, assets and suite.",
    add_arguments=_add_bundle_options,
    run=_make_bundle,
)
