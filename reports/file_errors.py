"""What keeps a command from reading a folder or writing to it, as an error with a next step and no traceback."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.errors import ReportError


@contextmanager
def told_when_unwritable(path: Path) -> Iterator[None]:
    """Raises ReportError in place of an OSError: ``path``, or what lies below it, cannot be written."""
    try:
        yield
    except OSError as error:
        raise ReportError(
            f"{error.filename or path} cannot be written: {_reason(error)}."
            " Check the path, space and permissions, or choose another with --out."
        ) from error


@contextmanager
def told_when_unreadable(path: Path) -> Iterator[None]:
    """Raises ReportError in place of an OSError: ``path``, or what lies below it, cannot be read."""
    try:
        yield
    except OSError as error:
        raise ReportError(
            f"{error.filename or path} cannot be read: {_reason(error)}. Check the path and its permissions."
        ) from error


def _reason(error: OSError) -> str:
    """In one line. A copy of a folder names every file that it could not copy; the first says why."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1])
    return error.strerror or str(error)
