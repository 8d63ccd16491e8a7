"""Which cases of which matrix run."""

import argparse
from dataclasses import dataclass
from typing import get_args

from suite.matrix.file import matrix_names
from suite.options.command_line import any_text
from suite.options.types import counts
from suite.schema.record import RlLibrary


@dataclass(frozen=True, kw_only=True)
class Selection:
    matrix: str = ""  # until the device is known, where the user names none: see suite.campaign.steps.start
    series: tuple[str, ...] = ()
    case_globs: tuple[str, ...] = ()
    rl_libraries: tuple[RlLibrary, ...] = ()
    gpus: tuple[int, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--matrix",
        type=any_text,
        help=f"{', '.join(matrix_names())}, or the path of a TOML file (default: first if there is a GPU, else smoke)",
    )
    parser.add_argument(
        "--series",
        type=any_text,
        action="append",
        default=[],
        metavar="NAME",
        help="only this series, e.g. ant-weak; repeatable",
    )
    parser.add_argument(
        "--case",
        type=any_text,
        action="append",
        default=[],
        metavar="GLOB",
        dest="case_globs",
        help="only cases whose ids match this pattern; repeatable",
    )
    parser.add_argument(
        "--rl-library", action="append", default=[], choices=get_args(RlLibrary), dest="rl_libraries",
        help="only this RL library; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--gpus",
        type=counts,
        default=(),
        metavar="N[,N]",
        help="only cases with these numbers of GPUs (processes on a CPU), e.g. 1,2,4",
    )
