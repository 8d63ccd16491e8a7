"""The folder of everything that is installed or built, and the locks of those who write there."""

import contextlib
import fcntl
import os
import reprlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from suite.errors import WorkerEnvironmentError
from suite.files.input_file import fault_of_path, open_at_once


def cache_root() -> Path:
    """Return the folder of everything that is installed or built: $LABSCALE_CACHE, or the user's cache folder.

    Raises:
        WorkerEnvironmentError: a variable is not a path, or the user's home is unknown.
    """
    if chosen := path_in("LABSCALE_CACHE"):
        try:
            return chosen.expanduser().absolute()
        except RuntimeError:
            raise WorkerEnvironmentError(
                f"LABSCALE_CACHE is {chosen}, and there is no such user's home. Set it to the path of a folder."
            ) from None
    if chosen := path_in("XDG_CACHE_HOME"):
        return chosen.absolute() / "labscale"
    if (own := home()) is None:
        raise WorkerEnvironmentError(
            f"Where this user (id {os.getuid()}) keeps files is not known: HOME is not set and the system has no entry"
            " for the user. Set LABSCALE_CACHE to a folder with 17 GB free that the user may write to, or set HOME."
        )
    return own.absolute() / ".cache" / "labscale"


def home() -> Path | None:
    """Return the user's home folder; None if neither HOME nor the system knows it."""
    try:
        return path_in("HOME") or Path.home()
    except RuntimeError:
        return None


def path_in(variable: str) -> Path | None:
    """Return the path in an environment variable; None if it is not set, or empty.

    Raises:
        WorkerEnvironmentError: the value cannot be a path.
    """
    text = os.environ.get(variable)
    if text and (fault := fault_of_path(text)):
        raise WorkerEnvironmentError(f"{variable} is {reprlib.repr(text)}, which {fault}. Set it to another path.")
    return Path(text) if text else None


@contextlib.contextmanager
def locked(path: Path, on_message: Callable[[str], None]) -> Iterator[None]:
    """Lock a file for the block. The system releases the lock if the process ends in any way.

    Raises:
        WorkerEnvironmentError: the file system has no locks, as Lustre and NFS may be mounted.
    """
    with open(path, "w", opener=open_at_once) as file:
        try:
            _lock(file, path, on_message)
        except OSError as error:
            raise WorkerEnvironmentError(
                f"{path} cannot be locked: {error.strerror}. Its file system has to allow flock; set LABSCALE_CACHE to"
                " a folder on one that does, such as a local disk."
            ) from error
        yield


def _lock(file: IO[str], path: Path, on_message: Callable[[str], None]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        on_message(f"Waiting for another process that has locked {path}")
        fcntl.flock(file, fcntl.LOCK_EX)
