"""Which result sets a change adds or changes, and what each is compared with. Reads folders of versions.

A changed set is compared with itself before the change; an added one with the set of the same name in the newest
earlier version that was there before the change. Where there is none, the reason is said instead.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from reports.analysis.scaling.lines import Line
from reports.sets.version import read_version, version_order
from reports.topics.history.comparison import Comparison, compare
from reports.verification.command import verify
from reports.verification.first import Verified
from suite.errors import LabscaleError
from suite.files.input_file import read_input
from suite.records.store import load_results
from suite.schema.record import CaseResult

type Kind = Literal["added", "changed", "removed"]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the verifier says of a set, and what the first page will show of it."""

    verified: Verified
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class ChangedSet:
    """``name`` and ``since`` are ``<version>/<set>``. Either ``comparison`` is there, or the ``reason`` why not.

    ``reason`` is in our words; ``error`` may hold any text of the files that could not be read.
    """

    name: str
    kind: Kind
    since: str | None = None  # None: nothing to compare with
    comparison: Comparison | None = None
    reason: str = ""
    error: str = ""
    look: Look | None = None  # None: it is removed, or of another tool


def changed_sets(before: Path, after: Path, *, threshold: float) -> tuple[ChangedSet, ...]:
    """``before`` and ``after`` are folders of versions, as ``reports/results``. Sets that are equal are left out."""
    old, new = _sets(before), _sets(after)
    found = []
    for name in sorted(old.keys() | new.keys(), key=version_order):
        if name not in new:
            found.append(ChangedSet(name=name, kind="removed", reason="It is no longer there."))
        elif name not in old:
            found.append(_looked_at(new[name], _compared(name, "added", _earlier(name, old), old, new, threshold)))
        elif _sha256(old[name]) != _sha256(new[name]):
            found.append(_looked_at(new[name], _compared(name, "changed", name, old, new, threshold)))
    return tuple(found)


def _sets(results: Path) -> dict[str, Path]:
    versions = (path for path in results.iterdir() if path.is_dir()) if results.is_dir() else ()
    return {
        f"{version.name}/{path.name}": path
        for version in versions
        for path in version.iterdir()
        if (path / "cases").is_dir()
    }


def _earlier(name: str, old: dict[str, Path]) -> str | None:
    version, _, folder = name.partition("/")
    names = [
        other
        for other in old
        if other.endswith(f"/{folder}") and version_order(other.partition("/")[0]) < version_order(version)
    ]
    return max(names, key=version_order, default=None)


def _compared(
    name: str, kind: Kind, since: str | None, old: dict[str, Path], new: dict[str, Path], threshold: float
) -> ChangedSet:
    if since is None:
        reason = "No earlier version has a set of this name, so there is nothing to compare it with."
        return ChangedSet(name=name, kind=kind, reason=reason)
    try:
        sides: Sequence[list[CaseResult]] = [load_results(folder) for folder in (old[since], new[name])]
    except LabscaleError as error:
        return ChangedSet(name=name, kind=kind, since=since, reason="One of the two cannot be read.", error=str(error))
    return ChangedSet(name=name, kind=kind, since=since, comparison=compare(*sides, threshold=threshold))


def _looked_at(folder: Path, one: ChangedSet) -> ChangedSet:
    """The same with what the verifier and the first page say, if the set can be read."""
    try:
        return replace(one, look=Look(verified=verify(folder), lines=read_version(folder, name="").lines))
    except LabscaleError as error:
        if one.error:
            return one
        return replace(one, comparison=None, reason="It cannot be read.", error=str(error))


def _sha256(folder: Path) -> str:
    digest = hashlib.sha256()
    for name, content in _contents(folder):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), read_input(path)
