"""The older versions beside a version, with which its pages compare it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from reports.verification.hashes import is_version
from reports.verification.samples.case_file import CASES
from reports.verification.samples.set_folder import StoredSet, read_set
from reports.verification.samples.stored_version import StoredVersion, contributors_of, roles_of, stored_version

type Read = Mapping[Path, Sequence[StoredSet]]  # folder of a version -> its sets


def older_versions(folder: Path, known: Read) -> tuple[StoredVersion, ...]:
    """Return the older versions that stand beside a version, newest first; ``known`` are not read again.

    What differs in their own files is found when they are verified themselves.
    """
    if not is_version(folder):
        return ()
    beside = [path for path in folder.resolve().parent.iterdir() if is_version(path)]
    older = [path for path in beside if _order(path.name) < _order(folder.resolve().name)]
    read = {path.resolve(): sets for path, sets in known.items()}
    found = [_version(path, read.get(path)) for path in sorted(older, key=lambda path: _order(path.name), reverse=True)]
    return tuple(version for version in found if version)


def _version(folder: Path, sets: Sequence[StoredSet] | None) -> StoredVersion | None:
    """Return None if its ``report.toml`` is none, as if it were not there."""
    try:
        roles, contributors = roles_of(folder), contributors_of(folder)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    if sets is None:
        sets = [read_set(path.parent, root=folder.parent) for path in sorted(folder.glob(f"*/{CASES}"))]
    return stored_version(sets, roles, contributors, name=folder.name)


def _order(name: str) -> list[tuple[int, int | str]]:
    """Return what sorts versions: numbers in a name count as numbers, so 2026.9 is before 2026.11."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|\D+", name)]
