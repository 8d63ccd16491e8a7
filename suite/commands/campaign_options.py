"""The options that ``plan`` and ``bench`` share, and ``Options`` from the arguments of either."""

import argparse

from suite.env_check.request import add_worker_options
from suite.launch import registry
from suite.options import results, rounds, selection, setup
from suite.options.options import Options, grouped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    selection.add_arguments(parser)
    rounds.add_arguments(parser)
    setup.add_arguments(parser)
    add_worker_options(parser)
    results.add_arguments(parser)
    registry.add_choosing_arguments(parser)


def add_licence(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--accept-eula", action="store_true", help="you accept NVIDIA's licence for Isaac Sim")


def options_of(arguments: argparse.Namespace) -> Options:
    """Read the options of ``plan`` and ``bench``.

    Raises:
        UsageError: options contradict each other, or one would have no effect.
    """
    launcher, settings = registry.chosen(arguments)
    return grouped(
        argparse.Namespace(**vars(arguments) | {"launcher": launcher, "launcher_settings": settings}),
    )
