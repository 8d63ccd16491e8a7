"""Checks what a user wrote: texts and paths must fit into a line of a script, a JSON file and a terminal. Pure."""

import os
import unicodedata
from pathlib import Path
from typing import Any, Final

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
    found = next((sign for sign in text if unicodedata.category(sign) in _NOT_TEXT), None)
    return None if found is None else f"has {found!r}, {_NOT_TEXT[unicodedata.category(found)]}"


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
