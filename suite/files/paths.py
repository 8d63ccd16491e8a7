"""The folder of labscale itself, and how a process that labscale starts finds its modules."""

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
