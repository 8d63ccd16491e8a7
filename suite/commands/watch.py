"""Train one case and show it in the browser of this machine, until Ctrl-C."""

import argparse
from typing import Final

from rich.console import Console

from suite.campaign.planning.plan import learn_tasks, make_plan
from suite.campaign.runs.watching import watch
from suite.campaign.steps import execute
from suite.matrix.file import matrix_names
from suite.options.command_line import any_text
from suite.options.options import Options, grouped

MATRIX: Final = "smoke"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "case", type=any_text, metavar="CASE", help="id of a case, or a pattern, e.g. 'ant*': its first case that can"
    )
    parser.add_argument(
        "--matrix",
        type=any_text,
        default=MATRIX,
        help=f"{', '.join(matrix_names())}, or the path of a TOML file (default: {MATRIX})",
    )


def command(arguments: argparse.Namespace, console: Console) -> None:
    """Carry out ``watch``. Raises as ``suite.campaign.runs.watching.watch`` does."""
    execute((learn_tasks, make_plan, watch), options_of(arguments), console)


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the options of a plan of the cases that were named."""
    return grouped(argparse.Namespace(matrix=arguments.matrix, case_globs=[arguments.case]))
