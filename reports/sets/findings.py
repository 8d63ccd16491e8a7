"""``findings.toml`` of a version: what it found, in the order in which people decide with it."""

import tomllib
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from suite.errors import ReportError
from suite.files.input_file import read_input

FILE: Final = "findings.toml"


class Finding(BaseModel):
    """An entry. ``figures``: a pattern of what follows the set in the ids of its figures. ``readme``: some of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    claim: str
    so_what: str
    status: Literal["clear", "within noise", "too few runs", "failed"]
    sets: tuple[str, ...]
    figures: str | None = None
    readme: tuple[str, ...] = ()  # ids of those that README.md shows
    replaces: str | None = None


def read_findings(folder: Path) -> tuple[Finding, ...]:
    """Return the entries of a version's file; none without one. Raises ReportError for a wrong file."""
    path = folder / FILE
    if not path.is_file():
        return ()
    try:
        entries = tomllib.loads(read_input(path).decode()).get("finding", [])
        return tuple(Finding.model_validate(entry) for entry in entries)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise ReportError(f"{path}: {error}. Mend the entry; CONTRIBUTING.md says what one has.") from None
