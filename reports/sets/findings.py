"""``findings.toml`` of a version: what it found, in the order in which people decide with it."""

from pathlib import Path
from typing import Final, Literal

from suite.errors import MatrixError, ReportError
from suite.files.toml_file import TomlTable, Tuple, read_toml

FILE: Final = "findings.toml"


class Finding(TomlTable):
    """An entry. ``figures``: a pattern of what follows the set in the ids of its figures. ``readme``: some of them."""

    id: str
    claim: str
    so_what: str
    status: Literal["clear", "within noise", "too few runs", "failed"]
    sets: Tuple[str]
    figures: str | None = None
    readme: Tuple[str] = ()  # ids of those that README.md shows
    replaces: str | None = None


class _Findings(TomlTable):
    finding: Tuple[Finding] = ()


def read_findings(folder: Path) -> tuple[Finding, ...]:
    """Return the entries of a version's file; none without one. Raises ReportError for a wrong file."""
    path = folder / FILE
    if not path.is_file():
        return ()
    try:
        return read_toml(path).validate(_Findings).finding
    except MatrixError as error:
        raise ReportError(f"{error} CONTRIBUTING.md says what an entry has.") from None
