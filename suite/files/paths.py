"""The folder of labscale itself, how a process that it starts finds its modules, and how a path is made free."""

import itertools
import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]  # the checkout, or the copy of it in an image or a bundle

IMAGE_ROOT: Final = Path("/opt/labscale/project")  # where labscale's images have it


def import_path(root: Path, python_path: str | None) -> dict[str, str]:
    """Return the variables with which Python imports from ``root`` before anything else.

    ``python_path`` is the caller's PYTHONPATH, where an air-gapped host keeps the worker's packages. Without
    PYTHONSAFEPATH, ``python -m tasks.worker`` would take a folder ``tasks`` below the current one.
    """
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(root), python_path))), "PYTHONSAFEPATH": "1"}


def set_aside(path: Path, why: str) -> Path | None:
    """Rename ``path`` to a free name in the same folder, ``NAME.<why>-<number>``; None when there is no such path."""
    if not path.exists():
        return None
    names = (path.with_name(f"{path.name}.{why}-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())  # no longer a .json that a reader would take
    path.rename(aside)
    return aside
