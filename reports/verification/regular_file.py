"""Reads a file of stored results: a regular one of at most 2 GiB. A pipe would block, and a device may never end."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

LARGEST_BYTES: Final = 2 * 2**30


def read_bytes(path: Path) -> bytes:
    """Raise OSError for a file that cannot be read, is not regular or is too large."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        if found.st_size > LARGEST_BYTES:
            raise OSError(errno.EFBIG, f"Larger than {LARGEST_BYTES / 2**30:.0f} GiB", str(path))
        return file.read()
