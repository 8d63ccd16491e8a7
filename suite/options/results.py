"""Where results go, how they are labelled, and whether a report follows."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from suite.options.command_line import any_path, any_text


@dataclass(frozen=True, kw_only=True)
class Results:
    out: Path | None = None
    host_label: str | None = None
    with_report: bool = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=any_path, metavar="DIR", help="results folder (default: runs/<matrix>)")
    parser.add_argument(
        "--host-label",
        type=any_text,
        metavar="TEXT",
        help="the machine's name in published results",
    )
