"""A search for the most environments that one rank can run, in place of a matrix."""

import argparse
from dataclasses import dataclass

from suite.options.command_line import any_text
from suite.options.types import positive


@dataclass(frozen=True, kw_only=True)
class Search:
    capacity: str | None = None  # the series
    most_envs: int | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--capacity",
        type=any_text,
        metavar="SERIES",
        help="in place of a matrix, find the most environments that one rank of this series can run",
    )
    parser.add_argument("--most-envs", type=positive, metavar="N", help="with --capacity: try at most N environments")
