"""The command line behind nox's sessions, such as ``env_check``, ``plan`` and ``bench``: see ``COMMANDS``."""

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from rich.console import Console

from suite.commands import accept, bench, build, bundle, env_check, plan, store, watch
from suite.external.parent_death import end_with_nox
from suite.options.command_line import Parser, exit_code_of, say, tables_console

ONE_STOP_S: Final = 1.0


class Command(Protocol):
    """A module with the options of a command and the function that carries it out; None means exit code 0."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def command(self, arguments: argparse.Namespace, console: Console) -> int | None: ...


COMMANDS: Final[dict[str, tuple[Command, str]]] = {
    "plan": (plan, "print every case of a matrix and start nothing"),
    "bench": (bench, "run a matrix, store its results and build their page"),
    "watch": (watch, "train one case and show it in the browser of this machine"),
    "bundle": (bundle, "pack labscale for a machine without internet"),
    "store": (store, "store the rounds that a campaign finished before its machine was gone"),
    "build": (build, "build a container image"),
    "accept": (accept, "say whether this machine is as fast as published ones with the same GPUs"),
    "env_check": (env_check, "check whether this machine, an image or several nodes can run the benchmark"),
}


def parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="suite", description="Plan and run scaling benchmarks of NVIDIA Isaac Lab.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, (module, what) in COMMANDS.items():
        command = commands.add_parser(
            name, help=what, description=(module.__doc__ or "").replace("``", "`"), prog=f"nox -s {name} --"
        )
        module.add_arguments(command)
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
        module, _ = COMMANDS[arguments.command]
        return module.command(arguments, tables_console())

    signal.signal(signal.SIGTERM, _interrupting())  # a scheduler's stop ends runs as Ctrl-C does
    return exit_code_of(
        run,
        kept="Every finished round is kept; run the same command again to go on.",
        tell=lambda text: say(Console(stderr=True, emoji=False), text, style="red"),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
