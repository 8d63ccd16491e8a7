"""The command line behind nox's sessions, such as ``env_check``, ``plan`` and ``bench``: see ``COMMANDS``."""

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console

from suite.commands import Command, campaigns, env_check, packing, store
from suite.external.parent_death import end_with_nox
from suite.options.command_line import Parser, exit_code_of, say, tables_console

ONE_STOP_S: Final = 1.0


COMMANDS: Final[dict[str, Command]] = {
    "plan": campaigns.PLAN_COMMAND,
    "bench": campaigns.BENCH_COMMAND,
    "watch": campaigns.WATCH_COMMAND,
    "bundle": packing.BUNDLE_COMMAND,
    "store": store.STORE_COMMAND,
    "build": packing.BUILD_COMMAND,
    "accept": campaigns.ACCEPT_COMMAND,
    "env_check": env_check.ENV_CHECK_COMMAND,
}


def parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="suite", description="Plan and run scaling benchmarks of NVIDIA Isaac Lab.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.summary, description=command.description, prog=f"nox -s {name} --")
        command.add_arguments(own)
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:  # argparse alone would not name the command
        commands.choices[arguments.command].refuse(unknown)
    return arguments


def _interrupting() -> Callable[[int, object], None]:
    """Return a handler that raises KeyboardInterrupt, once for all signals of one stop.

    A scheduler's SIGTERM reaches nox and this process. When nox ends, this process gets a second one, which must not
    cut short how it ends its runs.
    """
    last_s = -math.inf

    def interrupt(signum: int, _frame: object) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s > ONE_STOP_S:
            last_s = now_s
            raise KeyboardInterrupt(f"signal {signum}")

    return interrupt


def main(argv: list[str]) -> int:
    def run() -> int | None:
        end_with_nox()
        arguments = parse(argv)
        return COMMANDS[arguments.command].run(arguments, tables_console())

    signal.signal(signal.SIGTERM, _interrupting())  # a scheduler's stop ends runs as Ctrl-C does
    return exit_code_of(
        run,
        kept="Every finished run is kept; run the same command again to go on.",
        tell=lambda text: say(Console(stderr=True, emoji=False), text, style="red"),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
