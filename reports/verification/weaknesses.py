"""Known weaknesses of a version: findings that cannot be repaired, listed in git with why they stand.

``weaknesses.toml`` beside ``report.toml``, one ``[[weakness]]`` a finding, with its words exactly::

    [[weakness]]
    where = "h200-x4"
    what = "the fingerprint of the work"
    got = "missing in 35 of 35 completed rounds"
    why = "..."

A finding that is not listed is a fault, and so is a line that no longer fits a finding. Only findings about evidence
can be listed, those whose next step is ``OR_LIST``: samples that contradict each other are always a fault.
"""

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reports.verification.finding import OR_LIST, Finding
from reports.verification.regular_file import read_bytes

WEAKNESSES: Final = "weaknesses.toml"
_FIELDS: Final = {"where", "what", "got", "why"}


@dataclass(frozen=True, kw_only=True)
class Weakness:
    where: str  # below the version
    what: str
    got: str
    why: str


def read_weaknesses(version: Path) -> tuple[Weakness, ...]:
    """Return the list of a version; () without one. Raise ValueError if the file is not as described above."""
    path = version / WEAKNESSES
    if not path.is_file():
        return ()
    entries = tomllib.loads(read_bytes(path).decode()).get("weakness", [])
    for index, entry in enumerate(entries):
        if entry.keys() != _FIELDS or not all(isinstance(text, str) and text.strip() for text in entry.values()):
            raise ValueError(f"weakness {index + 1} needs {', '.join(sorted(_FIELDS))}, each a text")
    return tuple(Weakness(**entry) for entry in entries)


def without_known(
    version: Path, findings: Sequence[Finding], *, root: Path
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the faults and the known findings, of a version below ``root`` or of one of its sets, ``root`` itself."""
    try:
        listed = Counter((one.where, one.what, one.got) for one in read_weaknesses(version))
    except ValueError as error:
        got = f"not valid ({error})"
        return (*findings, _finding(version, root, "the file", got, "a list of weaknesses")), ()
    places = [(_below(version, root / one.where), one.what, one.got) for one in findings]
    is_listed = [
        place in listed and finding.next_step == OR_LIST for place, finding in zip(places, findings, strict=True)
    ]
    known = tuple(finding for finding, found in zip(findings, is_listed, strict=True) if found)
    faults = [finding for finding, found in zip(findings, is_listed, strict=True) if not found]
    if version.is_relative_to(root):
        for place, number in listed.items():
            what, got = f"the weakness of {place[0]}, {place[1]!r} {place[2]!r},", "not found any more"
            if place not in places:
                faults.append(_finding(version, root, what, got, "a finding in these words"))
            if number > 1:
                faults.append(_finding(version, root, what, f"listed {number} times", "listed once"))
    return tuple(faults), known


def _below(version: Path, path: Path) -> str:
    return path.relative_to(version).as_posix() if path.is_relative_to(version) else path.as_posix()


def _finding(version: Path, root: Path, what: str, got: str, expected: str) -> Finding:
    where = (version / WEAKNESSES).relative_to(root if version.is_relative_to(root) else version).as_posix()
    step = "Correct the list: write the line anew as `verify` says the finding, or remove it."
    return Finding(where=where, what=what, got=got, expected=expected, next_step=step)
