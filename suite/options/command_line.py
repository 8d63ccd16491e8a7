"""What every command has in common: argparse with labscale's exit code and a next step, and how a command ends."""

import argparse
import io
import reprlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from suite.errors import Interrupted, LabscaleError, UsageError
from suite.files.input_text import fault_of_path, fault_of_text
from suite.files.toml_file import did_you_mean


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command that changes no results. What it is refused for, and Ctrl-C, are told on stderr in a sentence."""
    try:
        return command()
    except KeyboardInterrupt:
        ended: LabscaleError = Interrupted("Interrupted. The results are as they were; run the same command again.")
    except LabscaleError as error:
        ended = error
    print(ended, file=sys.stderr)
    return ended.exit_code


class Parser(argparse.ArgumentParser):
    """``prog`` is what the user typed, ``nox -s NAME --``. By itself argparse ends with 2, which others say too."""

    def read(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Without arguments, those of the process. Raises UsageError."""
        print_any_name()
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            self.refuse(unknown)
        return options

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """As argparse does, which before Python 3.13 takes the ``--`` of ``--option=--`` away."""
        values = super()._get_values(action, arg_strings)
        if action.nargs is None and values == []:
            raise argparse.ArgumentError(action, "got '--', allowed is a value")
        return values

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nSee: " + (f"{self.prog} --help" if self.prog.endswith(" --") else "nox -l"))

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with what the options do not have, and what the first of it may have been meant for."""
        name = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
        hint = did_you_mean(name, self._option_string_actions)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint and '.' + hint}")


def print_any_name() -> None:
    """Print bytes of names and variables that are not UTF-8 as escapes; by itself Python ends in a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def any_text(given: str) -> str:
    """One line, and not the empty one, which a variable that is not set leaves: it would mean the default."""
    if not given:
        raise argparse.ArgumentTypeError("got '', allowed is any text but an empty one; or leave it out")
    if fault := fault_of_text(given):
        raise argparse.ArgumentTypeError(f"got {reprlib.repr(given)}, which {fault}; allowed is one line of UTF-8 text")
    return given


def any_path(given: str) -> Path:
    """Any but the empty one, which a variable that is not set leaves: it would be the folder one is in."""
    if not given:
        raise argparse.ArgumentTypeError("got '', allowed is a path, such as . for the folder you are in")
    if fault := fault_of_path(given):
        raise argparse.ArgumentTypeError(f"got {reprlib.repr(given)}, which {fault}; allowed is another path")
    return Path(given)


def results_path(given: str) -> Path:
    """A path that exists: every command that reads results says alike that they are not there, with one exit code."""
    path = any_path(given)
    if is_missing(path):
        raise argparse.ArgumentTypeError(nothing_at(path))
    return path


def is_missing(path: Path) -> bool:
    """What may not be looked at counts as there; whoever reads it says why it cannot."""
    try:
        return not path.exists()
    except OSError:
        return False


def nothing_at(path: Path) -> str:
    """What a command says of results that are not there."""
    return (
        f"got {str(path)!r}, where there is nothing; allowed is a folder of results, as `nox -s bench` wrote it to its"
        " --out, such as runs/full"
    )
