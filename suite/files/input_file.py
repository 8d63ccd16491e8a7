"""Opens and reads files that a user, a run or another machine wrote: regular ones only, of at most a stated size."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

# Of a case or a log. The telemetry of eight GPUs grows by 36 MB an hour, a rank's log by 1 kB an iteration.
LARGEST_BYTES: Final = 2 * 2**30


def open_input(path: Path) -> BinaryIO:
    """Open a regular file for reading. Pipes and devices are refused: they may block or never end.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    file = open(path, "rb", opener=open_at_once)  # noqa: SIM115  (the caller closes it)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def read_input(path: Path, *, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than ``largest_bytes``; ``strerror`` says which.
    """
    with open_input(path) as file:
        if os.fstat(file.fileno()).st_size <= largest_bytes:
            return file.read()
    raise OSError(errno.EFBIG, f"Larger than {largest_bytes / 2**20:.0f} MiB", str(path))


def read_text(path: Path) -> str:
    """Return the text of a regular file, such as a log: what is not UTF-8 becomes a sign of its own."""
    return read_input(path).decode("utf-8", errors="replace")


def open_at_once(path: str, flags: int) -> int:
    """Open a file for ``open``, without waiting for who is at the other end if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)
