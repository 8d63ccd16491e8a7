"""Provides ``exists()`` and ``is_dir()`` that return False if this user may not enter a parent folder.

``pathlib`` raises an error in that case, until Python 3.14. It happens when ``sudo -u`` or a container keeps HOME,
which is then another user's folder.
"""

import os
from pathlib import Path


def is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
