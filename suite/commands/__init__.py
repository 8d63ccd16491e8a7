"""The commands of ``python -m suite``: their options, and what each does with the packages below."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command. ``run`` returns its exit code; None means 0."""

    summary: str  # in the list of commands
    description: str  # in its own help
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Console], int | None]
