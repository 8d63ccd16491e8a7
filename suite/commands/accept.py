"""Say whether this machine is as fast as published ones with the same GPUs; measure it first without results."""

import argparse
import subprocess
import sys

from rich.console import Console

from suite.commands import bench
from suite.external.parent_death import end_with_parent
from suite.files.paths import ROOT
from suite.options.command_line import Parser, any_path, any_text, results_path

MATRIX = "accept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", type=results_path, nargs="?", metavar="RESULTS",
        help="the --out of `bench`, e.g. runs/accept (default: run the matrix accept first)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", type=any_text, metavar="MODEL", help="GPU model to compare with, e.g. h200 (default: its own)"
    )
    parser.add_argument(
        "--published", type=any_path, metavar="DIR",
        help="the folder of versions to compare with (default: reports/results)",
    )  # fmt: skip


def command(arguments: argparse.Namespace, console: Console) -> int:
    """Return 0: accepted; 1: slow; 2: nothing can be compared; others as in ``suite.errors``."""
    named = [f"--{name}={value}" for name in ("baseline", "published") if (value := getattr(arguments, name))]
    if arguments.results is not None:
        return _judge(str(arguments.results), *named)
    if refused := _judge(*named):  # before minutes are spent
        return refused
    asked = Parser(prog="nox -s bench --")
    bench.add_arguments(asked)
    bench.command(asked.read(["--matrix", MATRIX, "--device", "cuda", "--no-report"]), console)
    return _judge(str(ROOT / "runs" / MATRIX), *named)


def _judge(*words: str) -> int:
    """Run what knows the published results, in a process of its own: suite imports nothing of reports."""
    command = [sys.executable, "-m", "reports", "accept", *words]
    return subprocess.run(command, check=False, preexec_fn=end_with_parent).returncode
