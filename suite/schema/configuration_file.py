"""``configuration.json`` of a run's folder: its launcher writes it, and it tells every process its case.

Processes of the worker read it, so this file imports the standard library only.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from suite.schema.record import ROUND_VARIABLE, Case
from suite.schema.stored_names import plain, stored_name

CONFIGURATION_FILE: Final = "configuration.json"


def text_of(case: Case) -> str:
    return json.dumps(plain(case), indent=1) + "\n"


def read_configuration(run_dir: Path) -> Case:
    """Read the launcher's case; JSON's lists become tuples again."""
    stored: dict[str, Any] = json.loads((run_dir / CONFIGURATION_FILE).read_text(encoding="utf-8"))
    found = ((item.name, stored[stored_name(item.name)]) for item in fields(Case))
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found}
    return Case(**values)


def round_of(case: Case, environ: Mapping[str, str]) -> int:
    """Return the round that this process belongs to; 0 if nothing in the case depends on it.

    Raises:
        KeyError: the case has a seed for each round, and the launcher did not pass the round on.
    """
    return int(environ[ROUND_VARIABLE]) if case.seed_per_round else 0
