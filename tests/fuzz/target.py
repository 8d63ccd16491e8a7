"""What a target of fuzzing is, and one attempt on it."""

import contextlib
import io
import random
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite import errors
from suite.errors import LabscaleError

LIMIT_S: Final = 60.0  # far more than any attempt needs
MOST_COLUMNS: Final = 400
MOST_LINES: Final = 40  # of a traceback, at either end
EXIT_CODES: Final = frozenset(
    {0, None}
    | {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabscaleError)}
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """``attempt`` makes one mutated input in an empty folder and runs the real code on it, in this process.

    It returns when the code accepted the input, or refused it with a ``LabscaleError`` or an exit code of
    ``suite.errors``. It lets any other exception through.
    """

    name: str
    attempt: Callable[[random.Random, Path], None]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An attempt that ended in a traceback, or not at all. Its input is still in ``folder``."""

    target: str
    seed: int
    traceback: str
    folder: Path


class AttemptHangs(BaseException):
    """No Exception, which code under test may catch."""


def attempt_once(target: Target, seed: int) -> Finding | None:
    """One attempt in a new folder, which is kept only with a finding. The same seed makes the same input."""
    folder = Path(tempfile.mkdtemp(prefix=f"labscale-fuzz-{target.name}-"))
    try:
        with _time_limit(), _silence(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)  # comes whenever Python collects, of whatever it finds
            target.attempt(random.Random(f"{target.name} {seed}"), folder)  # noqa: S311 - no secret
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
        if not _refused(error):
            return Finding(target=target.name, seed=seed, traceback=_shortened(traceback.format_exc()), folder=folder)
    shutil.rmtree(folder)
    return None


def _refused(error: BaseException) -> bool:
    return isinstance(error, LabscaleError) or (isinstance(error, SystemExit) and error.code in EXIT_CODES)


def _shortened(text: str) -> str:
    """A recursion that is too deep says the same a thousand times, and a message may hold the whole input."""
    lines = [line[:MOST_COLUMNS] for line in text.splitlines()]
    return "\n".join(lines if len(lines) <= 2 * MOST_LINES else [*lines[:MOST_LINES], "...", *lines[-MOST_LINES:]])


def _silence() -> contextlib.ExitStack:
    """Swallow what the code prints."""
    stack = contextlib.ExitStack()
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
    return stack


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raise AttemptHangs where the code is after ``LIMIT_S``. A timer that runs already is put back."""

    def say(_signum: int, _frame: object) -> None:
        raise AttemptHangs(f"no end after {LIMIT_S:.0f} s")

    handler = signal.signal(signal.SIGALRM, say)
    timer = signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
