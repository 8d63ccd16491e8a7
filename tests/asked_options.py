"""``Options`` for tests, from options by their names."""

import argparse
from dataclasses import fields
from typing import Any

from suite.options.options import Options, grouped


def options_with(**options: Any) -> Options:
    """What a command line with these options asks; nothing checks whether they go together."""
    return grouped(argparse.Namespace(**options))


def changed(options: Options, **changes: Any) -> Options:
    """The same with some options that are other ones, by their names."""
    groups = (getattr(options, group.name) for group in fields(options))
    now = {one.name: getattr(group, one.name) for group in groups for one in fields(group)}
    return options_with(**now | changes)
