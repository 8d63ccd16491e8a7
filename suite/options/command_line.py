"""What all commands share: argparse with labscale's exit codes, plain output, and how a command ends."""

import argparse
import contextlib
import errno
import io
import os
import re
import reprlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from suite.errors import Interrupted, LabscaleError, OutputError, ResourcesError, UsageError
from suite.files.input_file import fault_of_path, fault_of_text, open_input
from suite.files.paths import IMAGE_ROOT, ROOT
from suite.files.toml_file import did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

LOG_WIDTH: Final = 240  # columns
LEAST_WIDTH: Final = 40
EXHAUSTED: Final = {
    errno.ENOMEM: "There is too little memory: raise `ulimit -v` or the container's limit, or end other programs.",
    errno.EMFILE: "Too few files may be open: raise `ulimit -n`, such as to 1024.",
    errno.ENFILE: "Too many files are open on this machine: end other programs.",
    errno.EAGAIN: "No process can be started: raise `ulimit -u`, or end other programs.",
}
LAUNCHER_VARIABLE: Final = "LABSCALE_LAUNCHER"  # the program that started labscale, if it was not nox
_SESSION: Final = re.compile(
    r"(?:python3 -m )?nox -s (accept|bench|compare|env_check|plan|report|store|verify)\b(?: --(?= |$))?", re.MULTILINE
)


def as_typed_here(text: str) -> str:
    """Name commands as they are typed on this host: on one with a bundle by its labscale.sh, which has no nox."""
    launcher = os.environ.get(LAUNCHER_VARIABLE)
    return _SESSION.sub(lambda session: f"{shlex.quote(launcher)} {session[1]}", text) if launcher else text


# What a person, nox, a bundle or a pod's manifest may set. Processes of labscale tell each other the rest.
_GIVEN: Final = {
    LAUNCHER_VARIABLE,
    "LABSCALE_CACHE",
    "LABSCALE_NOX_PID",
    "LABSCALE_VERSIONS",
    "LABSCALE_REPORT_VERSION",
}
# They would have git look at another repository; git's hooks set them.
_OF_GIT: Final = re.compile("GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|NAMESPACE|PREFIX|(ALTERNATE_)?OBJECT_DIRECTOR.*)")

_OF_PYTHON: Final = re.compile("PYTHON(?!PATH$).*")


def forget_inner_variables() -> None:
    """Drop what only labscale and git tell their own processes, and Python's settings, wherever a shell has them from.

    PYTHONPATH stays: it may have the worker's packages.
    """
    given = _GIVEN | ({"LABSCALE_IMAGE_DIGEST"} if ROOT == IMAGE_ROOT else set())
    for name in set(os.environ) - given:
        if name.startswith("LABSCALE_") or _OF_GIT.fullmatch(name) or _OF_PYTHON.fullmatch(name):
            del os.environ[name]
    os.environ["PYTHONUTF8"] = "1"  # of child processes too


def exit_code_of(
    command: Callable[[], int | None],
    *,
    kept: str = "The results are as they were; run the same command again.",
    tell: Callable[[str], None] = lambda text: print(as_typed_here(text), file=sys.stderr),
) -> int:
    """Run a command and return its exit code; its errors, Ctrl-C and an output that nobody takes are a sentence.

    ``kept`` says what an interruption left. ``tell`` prints the sentence.
    """
    _take_standard_streams()
    forget_inner_variables()
    try:
        try:
            code = command() or 0
        except SystemExit:  # argparse has printed its help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except KeyboardInterrupt:
        ended: LabscaleError = Interrupted(f"Interrupted. {kept}")
    except OutputError as error:
        ended = OutputError(f"{error} {kept}")
    except LabscaleError as error:
        ended = error
    except (MemoryError, OSError) as error:
        cause = EXHAUSTED.get(getattr(error, "errno", errno.ENOMEM))
        if cause is None:
            raise
        ended = ResourcesError(f"{cause} {kept}")
    else:
        return code
    try:
        tell(str(ended))
        sys.stderr.flush()
    except OSError:
        _send_to_nobody(sys.stderr)
    with contextlib.suppress(OutputError):
        sys.stdout.flush()
    return ended.exit_code


class _Output(io.TextIOWrapper):
    """Standard output, which fails by an error of labscale's. It writes bytes that are not UTF-8 as escapes."""

    def write(self, text: str) -> int:
        with _told_when_unwritable():
            return super().write(text)

    def flush(self) -> None:
        with _told_when_unwritable():
            super().flush()


@contextlib.contextmanager
def _told_when_unwritable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _send_to_nobody(sys.stdout)
        raise OutputError(f"Standard output cannot be written: {error.strerror}.") from error


def _send_to_nobody(stream: TextIO) -> None:
    """Let what is left to write go nowhere: Python would try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _take_standard_streams() -> None:
    """Open closed ones: a file of results would get the number of one, and what is printed would land there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is that of the stream
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if type(sys.stdout) is io.TextIOWrapper:
        is_terminal = sys.stdout.line_buffering
        sys.stdout = _Output(sys.stdout.detach(), "utf-8", "backslashreplace", line_buffering=is_terminal)


def say(console: "Console", text: str, *, style: str | None = None) -> None:
    """Print a text as it is: no markup, no coloured numbers, and lines that stay whole for copying."""
    console.print(as_typed_here(text), style=style, highlight=False, markup=False, soft_wrap=True)


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are UsageErrors; argparse's own exit code, 2, has another meaning here.

    ``prog`` is what the user typed: ``nox -s NAME --``.
    """

    def read(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse ``arguments``, by default those of the process. Raises UsageError."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            self.refuse(unknown)
        return options

    def format_help(self) -> str:
        return as_typed_here(super().format_help())

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuse ``--option=--``, whose value argparse drops before Python 3.13."""
        values = super()._get_values(action, arg_strings)
        if action.nargs is None and values == []:
            raise argparse.ArgumentError(action, "got '--', allowed is a value")
        return values

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nSee: " + (f"{self.prog} --help" if self.prog.endswith(" --") else "nox -l"))

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Raise a UsageError that names the unknown options, and the option that the first is most like."""
        name = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
        hint = did_you_mean(name, self._option_string_actions)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint and '.' + hint}")


def tables_console() -> "Console":
    """Standard output for tables. A log has no width; a terminal too narrow for a table breaks its lines."""
    from rich.console import Console  # noqa: PLC0415  (a tenth of a second, which `--help` would wait for)

    console = Console(emoji=False)
    console.width = max(console.width, LEAST_WIDTH) if sys.stdout.isatty() else LOG_WIDTH
    return console


def any_text(given: str) -> str:
    """One line of text. An empty one, which an unset variable leaves, is refused: it would mean the default."""
    if not given:
        raise argparse.ArgumentTypeError("got '', allowed is any text but an empty one; or leave it out")
    if fault := fault_of_text(given):
        raise argparse.ArgumentTypeError(f"got {reprlib.repr(given)}, which {fault}; allowed is one line of UTF-8 text")
    return given


def any_path(given: str) -> Path:
    """Any path but the empty one: a variable that is not set leaves it, and it would be the current folder."""
    if not given:
        raise argparse.ArgumentTypeError("got '', allowed is a path, such as . for the folder you are in")
    if fault := fault_of_path(given):
        raise argparse.ArgumentTypeError(f"got {reprlib.repr(given)}, which {fault}; allowed is another path")
    return Path(given)


def configuration_file(given: str) -> Path:
    """A regular file that can be read, for another program, or /dev/null. Any other device could keep it waiting."""
    path = any_path(given)
    try:
        if path != Path(os.devnull):
            open_input(path).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"got {given!r}: {error.strerror}; allowed is a file that you can read"
        ) from None
    return path


def results_path(given: str) -> Path:
    """A path that exists. All commands that read results refuse a missing one in the same words and exit code."""
    path = any_path(given)
    if why := missing_results(path):
        raise argparse.ArgumentTypeError(why)
    return path


def missing_results(path: Path) -> str | None:
    """What a command says about results that do not exist. What cannot be looked at is there: its reader says why."""
    try:
        if path.exists():
            return None
    except OSError:
        return None
    return (
        f"got {str(path)!r}, where there is nothing; allowed is a folder of results, as `nox -s bench` wrote it to its"
        " --out, such as runs/full"
    )
