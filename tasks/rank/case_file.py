"""Reads what tells every rank its case and round; imports no torch, whose import is timed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.schema.record import ROUND_VARIABLE, Case


def read_case(path: Path) -> Case:
    """Read the launcher's case; JSON's lists become tuples again."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Case(**fields)


def round_of(case: Case, environ: Mapping[str, str]) -> int:
    """Return the round that this process belongs to; 0 if nothing in the case depends on it.

    Raises:
        KeyError: the case has a seed for each round, and the launcher did not pass the round on.
    """
    return int(environ[ROUND_VARIABLE]) if case.seed_per_round else 0
