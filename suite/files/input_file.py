"""Opens and reads files that a user, a run or another machine wrote, and checks texts and paths that a user wrote.

Only regular files are read, of at most a stated size. Texts and paths must fit into a line of a script, a JSON file and
a terminal.
"""

import errno
import os
import stat
import unicodedata
from pathlib import Path
from typing import Any, BinaryIO, Final

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


# ---- texts and paths ----


_NOT_TEXT: Final = {
    "Cc": "a control character",
    "Zl": "a line break",
    "Zp": "a line break",
    "Cs": "a byte that is not UTF-8",
}
_MOST_LEVELS: Final = 32  # of tables and lists in each other; labscale's own files have 6
_LONGEST_NAME: Final = 255  # bytes, of a file or folder on most file systems
_LONGEST_PATH: Final = 3000  # bytes; Linux accepts 4095, and folders of results need some below


def fault_of_text(text: str) -> str | None:
    """Why ``text`` cannot be used as one line of UTF-8; None if it can."""
    sign = next((sign for sign in text if unicodedata.category(sign) in _NOT_TEXT), None)
    return None if sign is None else f"has {sign!r}, {_NOT_TEXT[unicodedata.category(sign)]}"


def fault_of_path(text: str) -> str | None:
    """Why ``text`` cannot be used as a path, whether or not it exists; None if it can."""
    if fault := fault_of_text(text):
        return fault
    if len(os.fsencode(text)) > _LONGEST_PATH:
        return f"has {len(os.fsencode(text))} bytes, more than {_LONGEST_PATH}"
    if longest := next((part for part in Path(text).parts if len(os.fsencode(part)) > _LONGEST_NAME), None):
        return f"has a name of {len(os.fsencode(longest))} bytes, more than {_LONGEST_NAME}"
    return None


def check_depth(document: Any, levels: int = _MOST_LEVELS) -> None:
    """Raise RecursionError if tables and lists are nested more deeply than in any file of labscale."""
    if not levels:
        raise RecursionError
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    for value in inner:
        if isinstance(value, dict | list):  # the samples of a run are millions of numbers
            check_depth(value, levels - 1)
