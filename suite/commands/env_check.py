"""Check whether this machine, an image or every node can run a stack.

Exit code 0: it can; 1: it can, with warnings; 2: it cannot.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from suite.commands import Command
from suite.env_check.display import print_nodes, print_report
from suite.env_check.nodes import Collected, Difference, collect_slurm, collect_ssh, differences, slurm_nodes
from suite.env_check.report import env_check
from suite.env_check.request import Request, add_worker_options
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.launch.containers import check_image
from suite.options.command_line import any_text, configuration_file
from suite.options.declaration import add_options, read
from suite.options.types import hosts

OF_ALLOCATION: Final = ()  # --nodes without names
FAILED: Final = 2


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser, Request)
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="print the report with all evidence as JSON"
    )
    add_worker_options(parser)
    parser.add_argument(
        "--ssh-config",
        type=configuration_file,
        metavar="FILE",
        help="with --nodes HOST,HOST: configuration file of ssh, as for `ssh -F`",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--image", type=any_text, metavar="NAME", help="check inside this container image")
    where.add_argument(
        "--nodes", type=hosts, nargs="?", const=OF_ALLOCATION, metavar="HOST[,HOST]",
        help="check every node of this Slurm allocation, or these hosts over ssh, and say where they differ",
    )  # fmt: skip


def run_env_check(arguments: argparse.Namespace, console: Console) -> int:
    """Run what was asked for; 0: the stack can run, 1: with warnings, 2: it cannot.

    Raises:
        UsageError: settings of ssh, and no hosts that it would reach.
    """
    if arguments.ssh_config is not None and not arguments.nodes:
        raise UsageError(
            f"--ssh-config {arguments.ssh_config}: only with --nodes HOST,HOST, which ssh reaches, got no hosts. Name "
            "them, or leave it out."
        )
    if arguments.nodes is not None:
        return _check_nodes(arguments, console)
    request = read(Request, arguments)
    report = env_check(request) if arguments.image is None else check_image(arguments.image, request)
    if arguments.as_json:
        sys.stdout.write(report.as_json() + "\n")
    else:
        print_report(console, report)
    return report.exit_code


def _check_nodes(arguments: argparse.Namespace, console: Console) -> int:
    asked = (sys.executable, *read(Request, arguments).arguments())
    if arguments.nodes == OF_ALLOCATION:
        names: Sequence[str] = slurm_nodes(os.environ)
        runs = ROOT / "runs"  # beside the results: a folder that all nodes see if they see the checkout
        runs.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="env_check-", dir=runs) as folder:
            collected = collect_slurm(asked, nodes=names, folder=Path(folder), environ=os.environ)
    else:
        collected = collect_ssh(
            asked, hosts=arguments.nodes, working_dir=ROOT, environ=os.environ, config=arguments.ssh_config
        )
    differing = differences(collected.reports)
    if arguments.as_json:
        sys.stdout.write(_nodes_as_json(collected, differing) + "\n")
    else:
        print_nodes(console, collected.reports, collected.failures, differing)
    if collected.failures:
        return FAILED
    return max([1 if differing else 0, *(report.exit_code for report in collected.reports.values())])


def _nodes_as_json(collected: Collected, differing: Sequence[Difference]) -> str:
    document = {
        "nodes": {name: report.as_document() for name, report in collected.reports.items()},
        "failures": [asdict(failure) for failure in collected.failures],
        "differences": [asdict(difference) for difference in differing],
    }
    return json.dumps(document, indent=1, allow_nan=False)


ENV_CHECK_COMMAND: Final = Command(
    summary="check whether this machine, an image or several nodes can run the benchmark",
    description=__doc__,
    add_arguments=_add_options,
    run=run_env_check,
)
