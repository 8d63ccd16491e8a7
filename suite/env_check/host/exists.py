"""Whether something is there for this user: what is in a folder that may not be entered is not.

``pathlib`` raises there, until Python 3.14. Another user's folder is HOME where ``sudo -u`` or a container kept it.
"""

import os
from pathlib import Path


def is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
