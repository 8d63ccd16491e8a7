"""What keeps a command from reading a folder or writing to it, as an error with a next step and no traceback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.errors import LabscaleError, ReportError


@contextmanager
def told_when_unwritable(
    path: Path, kind: type[LabscaleError] = ReportError, next_step: str = "or choose another with --out"
) -> Iterator[None]:
    """Raises an error of this kind in place of an OSError: ``path``, or what lies below it, cannot be written."""
    try:
        yield
    except OSError as error:
        what = f"{error.filename or path} cannot be written: {_reason(error)}"
        raise kind(f"{what}. Check the path, space and permissions, {next_step}.") from error


@contextmanager
def told_when_unreadable(path: Path) -> Iterator[None]:
    """Raises ReportError in place of an OSError: ``path``, or what lies below it, cannot be read."""
    try:
        yield
    except OSError as error:
        raise ReportError(
            f"{_at_fault(error, path)} cannot be read: {_reason(error)}. Check the path and its permissions."
        ) from error


def _at_fault(error: OSError, path: Path) -> Path:
    """What nobody may look at is in a folder that may not be entered: that one is at fault, or what the error names."""
    named = Path(error.filename or path)
    return next((folder for folder in (named, *named.parents) if not _is_hidden(folder)), named)


def _is_hidden(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def _reason(error: OSError) -> str:
    """The error in one line. A copy of a folder names every file that it could not copy; the first says why."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1])
    return error.strerror or str(error)
