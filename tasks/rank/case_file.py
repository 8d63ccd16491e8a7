"""Reads the file that tells every rank its case; imports no torch, whose import is timed."""

import json
from pathlib import Path
from typing import Any

from suite.schema.record import Case


def read_case(path: Path) -> Case:
    """Read the launcher's case; JSON's lists become tuples again."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Case(**fields)
