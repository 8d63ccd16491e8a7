"""What ``report.toml`` of a version says of its sets."""

import tomllib
from pathlib import Path
from typing import Final

from reports.verification.finding import Json
from reports.verification.regular_file import read_bytes

MANIFEST: Final = "report.toml"  # a folder with it is a version


def contributors_of(folder: Path) -> dict[str, str]:
    """Return who measured a set, of those that ``report.toml`` calls contributed.

    Raises ValueError and LookupError if the file is not what labscale writes.
    """
    return {entry["folder"]: entry["contributed_by"] for entry in _entries(folder) if "contributed_by" in entry}


def _entries(folder: Path) -> list[Json]:
    path = folder / MANIFEST
    return tomllib.loads(read_bytes(path).decode()).get("set", []) if path.is_file() else []
