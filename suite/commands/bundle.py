"""Pack labscale for a machine without internet: worker, assets and suite."""

import argparse
from functools import partial
from typing import get_args

from rich.console import Console

from suite.files.paths import ROOT
from suite.install import bundle, bundle_contents
from suite.install.bundle_contents import Versions, asked_by, install_sets
from suite.install.worker import provision_worker
from suite.matrix.cases import expand, on_nodes_of
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.options.command_line import any_path, any_text, say
from suite.options.types import positive
from suite.schema.record import Device, Stack


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def command(arguments: argparse.Namespace, console: Console) -> None:
    """Provision the worker here, then pack what the target lacks."""
    on_message = partial(say, console)
    # Read first: what is refused should not cost an installation.
    target = bundle_contents.read_freeze(arguments.target_has) if arguments.target_has else bundle.NOTHING
    sets = versions_of(arguments.matrix, arguments.device) if arguments.matrix else []
    worker = provision_worker(
        project_root=ROOT,
        stack=arguments.stack,
        worker_python=arguments.worker_python,
        assets="offline",
        on_message=on_message,
    )
    if worker.asset_root is None:
        raise AssertionError("offline assets have a root")
    bundle.make_bundle(
        project_root=ROOT,
        worker_python=worker.python,
        asset_root=worker.asset_root,
        out_dir=arguments.out,
        part_size_mib=arguments.part_size_mib,
        target=target,
        stack=arguments.stack,
        for_device=arguments.device,
        versions=install_sets(worker.python, sets, on_message=on_message),
        on_message=on_message,
    )


def versions_of(name_or_path: str, device: Device) -> list[Versions]:
    """Return the sets of versions that a matrix asks for. Raises MatrixError if it is not valid."""
    catalog = load_catalog()
    matrix = on_nodes_of(load_matrix(name_or_path, catalog), ranks_per_node=1)  # versions do not depend on it
    return asked_by(expand(matrix, catalog, device=device, assets="offline"))
