"""The commands ``plan``, ``bench``, ``watch`` and ``accept``, which plan and run campaigns."""

import argparse
import subprocess
import sys
from typing import Final

from rich.console import Console

from suite.campaign.bisect import BISECT, of_bisect
from suite.campaign.capacity import of_capacity
from suite.campaign.planning.plan import learn_tasks, make_plan
from suite.campaign.runs.uncounted import watch
from suite.campaign.steps import BENCH, CAPACITY, MANIFESTS, PLAN, RENDER, execute
from suite.commands import Command
from suite.env_check.request import add_worker_options
from suite.errors import UsageError
from suite.external.parent_death import end_with_parent
from suite.files.paths import ROOT
from suite.launch import registry
from suite.matrix.file import matrix_names
from suite.options.command_line import Parser, any_path, any_text, results_path
from suite.options.declaration import add_options
from suite.options.options import Options, Place, Results, Rounds, Search, Selection, Setup

WATCHED: Final = "smoke"  # the matrix of ``watch``
ACCEPT: Final = "accept"  # the matrix of ``accept``


def _add_shared_options(parser: argparse.ArgumentParser) -> None:
    for group in (Selection, Rounds, Setup):
        add_options(parser, group)
    add_worker_options(parser)
    add_options(parser, Results)
    registry.add_choosing_options(parser)


def options_of(arguments: argparse.Namespace) -> Options:
    """Read the options of ``plan`` and ``bench``.

    Raises:
        UsageError: options contradict each other, or one would have no effect.
    """
    launcher, settings = registry.chosen(arguments)
    chosen = {"launcher": launcher, "launcher_settings": settings}
    return Options.of(argparse.Namespace(**vars(arguments) | chosen))


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    _add_shared_options(parser)
    registry.add_manifest_options(parser)
    add_options(parser, Place)


def _plan(arguments: argparse.Namespace, console: Console) -> None:
    options = options_of(arguments)
    execute(MANIFESTS if options.manifests.render else PLAN, options, console)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    _add_shared_options(parser)
    add_options(parser, Search)
    add_options(parser, Rounds, only="bench")
    registry.add_launcher_options(parser)
    add_options(parser, Place)
    for group in (Place, Results):
        add_options(parser, group, only="bench")


def bench(arguments: argparse.Namespace, console: Console) -> None:
    """Run a campaign of a matrix, or one that searches.

    Raises:
        UsageError: --most-envs without --capacity.
    """
    options = options_of(arguments)
    search = options.search
    if search.bisect is not None:
        execute(BISECT, of_bisect(options), console)
    elif search.capacity is not None:
        execute(CAPACITY, of_capacity(options), console)
    elif search.most_envs is not None:
        raise UsageError(f"--most-envs {search.most_envs} limits a search for capacity; add --capacity SERIES.")
    else:
        execute(RENDER if options.place.render_only else BENCH, options, console)


def _add_watch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "case",
        type=any_text,
        metavar="CASE",
        help="id of a configuration, or a pattern, e.g. 'ant*': the first that can be shown here",
    )
    parser.add_argument(
        "--matrix",
        type=any_text,
        default=WATCHED,
        help=f"{', '.join(matrix_names())}, or the path of a TOML file (default: {WATCHED})",
    )


def _watch(arguments: argparse.Namespace, console: Console) -> None:
    options = Options.of(argparse.Namespace(matrix=arguments.matrix, case_globs=[arguments.case]))
    execute((learn_tasks, make_plan, watch), options, console)


def _add_accept_options(parser: argparse.ArgumentParser) -> None:
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


def _accept(arguments: argparse.Namespace, console: Console) -> int:
    """Return 0: accepted; 1: slow; 2: nothing can be compared; others as in ``suite.errors``."""
    named = [f"--{name}={value}" for name in ("baseline", "published") if (value := getattr(arguments, name))]
    if arguments.results is not None:
        return _judge(str(arguments.results), *named)
    if refused := _judge(*named):  # before minutes are spent
        return refused
    parser = Parser(prog="nox -s bench --")
    add_bench_options(parser)
    bench(parser.read(["--matrix", ACCEPT, "--device", "cuda", "--no-report"]), console)
    return _judge(str(ROOT / "runs" / ACCEPT), *named)


def _judge(*words: str) -> int:
    """Run what knows the published results, in a process of its own: suite imports nothing of reports."""
    command = [sys.executable, "-m", "reports", "accept", *words]
    return subprocess.run(command, check=False, preexec_fn=end_with_parent).returncode


PLAN_COMMAND: Final = Command(
    summary="print every configuration of a matrix and start nothing",
    description="Print every configuration of a matrix and start nothing; or write the files that a cluster needs.",
    add_arguments=_add_plan_options,
    run=_plan,
)
BENCH_COMMAND: Final = Command(
    summary="run a matrix, store its results and build their page",
    description="Run a matrix, store its results and build their page; or search for the most environments, or for a "
    "slow release.",
    add_arguments=add_bench_options,
    run=bench,
)
WATCH_COMMAND: Final = Command(
    summary="train one configuration and show it in the browser of this machine",
    description="Train one configuration and show it in the browser of this machine, until Ctrl-C.",
    add_arguments=_add_watch_options,
    run=_watch,
)
ACCEPT_COMMAND: Final = Command(
    summary="say whether this machine is as fast as published ones with the same GPUs",
    description="Say whether this machine is as fast as published ones with the same GPUs; measure it first without "
    "results.",
    add_arguments=_add_accept_options,
    run=_accept,
)
