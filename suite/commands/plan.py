"""Print every case of a matrix and start nothing; or write the files that a cluster needs to run it."""

import argparse

from rich.console import Console

from suite.campaign.steps import MANIFESTS, PLAN, execute
from suite.commands import campaign_options
from suite.launch import registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    campaign_options.add_arguments(parser)
    registry.add_manifest_arguments(parser)
    campaign_options.add_licence(parser)


def command(arguments: argparse.Namespace, console: Console) -> None:
    options = campaign_options.options_of(arguments)
    execute(MANIFESTS if options.manifests.render else PLAN, options, console)
