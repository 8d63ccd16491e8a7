"""Where everything is that is installed or built, and who may write there."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from suite.errors import WorkerEnvironmentError


def cache_root() -> Path:
    """Folder of everything that is installed or built: $LABSCALE_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("LABSCALE_CACHE"):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labscale"


@contextlib.contextmanager
def locked(path: Path, on_message: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock file; the system lets go of it when the process ends, however it ends.

    Raises:
        WorkerEnvironmentError: its file system has no locks, as Lustre and NFS may be mounted.
    """
    with path.open("w") as file:
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
        on_message(f"Waiting for another process that holds {path}")
        fcntl.flock(file, fcntl.LOCK_EX)
