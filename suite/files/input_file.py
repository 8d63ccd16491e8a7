"""Reads a whole file that a user named or copied here."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

LARGEST_BYTES: Final = 64 * 2**20


def read_input(path: Path, *, largest_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of a regular file. Pipes and devices are refused: they may block or never end.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than ``largest_bytes``; ``strerror`` says which.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise OSError(errno.EFBIG, f"Larger than {largest_bytes / 2**20:.0f} MiB", str(path))
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for a writer if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
