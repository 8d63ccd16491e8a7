"""Renames a file or folder, so that another takes its place and nothing is lost."""

from pathlib import Path
from typing import Final

from suite.errors import CampaignError

MOST: Final = 1000


def set_aside(path: Path, why: str) -> Path | None:
    """Rename ``path`` to a free name in the same folder, ``NAME.<why>-<number>``; None when there is no such path.

    Raises:
        CampaignError: all names are taken.
    """
    if not path.exists():
        return None
    for number in range(1, MOST):
        aside = path.with_name(f"{path.name}.{why}-{number}")  # no longer a .json that a reader would take
        if not aside.exists():
            path.rename(aside)
            return aside
    raise CampaignError(f"{path} has been set aside {MOST} times. Look at what is there before you run again.")
