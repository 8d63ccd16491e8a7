"""Run a matrix, store its results and build their page; or search for the most environments, or for a slow release."""

import argparse

from rich.console import Console

from suite.campaign.bisect.search import BISECT, of_bisect
from suite.campaign.capacity.search import of_capacity
from suite.campaign.steps import BENCH, CAPACITY, RENDER, execute
from suite.commands import campaign_options
from suite.errors import UsageError
from suite.launch import registry
from suite.options import rounds, search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    campaign_options.add_arguments(parser)
    search.add_arguments(parser)
    rounds.add_running_arguments(parser)
    registry.add_arguments(parser)
    campaign_options.add_licence(parser)
    parser.add_argument(
        "--ignore-env-check", action="store_true", help="run even if env_check finds that the stack cannot run"
    )
    parser.add_argument("--no-report", action="store_false", dest="with_report", help="do not build the HTML page")


def command(arguments: argparse.Namespace, console: Console) -> None:
    """Run a campaign of a matrix, or one that searches.

    Raises:
        UsageError: --most-envs without --capacity.
    """
    options = campaign_options.options_of(arguments)
    wanted = options.search
    if wanted.bisect is not None:
        execute(BISECT, of_bisect(options), console)
    elif wanted.capacity is not None:
        execute(CAPACITY, of_capacity(options), console)
    elif wanted.most_envs is not None:
        raise UsageError(f"--most-envs {wanted.most_envs} limits a search for capacity; add --capacity SERIES.")
    else:
        execute(RENDER if options.place.render_only else BENCH, options, console)
