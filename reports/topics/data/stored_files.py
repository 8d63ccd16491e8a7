"""What is stored of each set, of imported bundles, and of what env_check said beside them, with sizes.

Two kinds of files are offered beside them and are counted nowhere: the tables and lists of a whole version, because one
of them, ``page_figures.json``, has these counts and cannot have its own size; and the hashes of a set, which are
written after that file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reports.display.topic import Figures
from reports.sets.imported.imported_set import bundle_paths
from reports.sets.version import Version
from reports.verification.hashes import SUMS, members
from reports.verification.samples.stored_version import ENV_CHECKS


@dataclass(frozen=True)
class StoredFiles:
    """``files`` has paths by their names below the folder; ``sums`` is the file of their hashes, if there is one."""

    name: str
    title: str
    files: Mapping[str, Path]
    sums: Path | None

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file by its name."""
        return {name: path.stat().st_size for name, path in self.files.items()}


def stored_files(version: Version) -> Sequence[StoredFiles]:
    """Return those of every set, then those of imported bundles, in the order of the version, then of env_check."""
    own = [
        _stored(one.name or "results", one.title or "Results", one.folder, _members(one.folder)) for one in version.sets
    ]
    imported = [
        _stored(one.name or "imported", one.title or "Imported bundles", one.folder, bundle_paths(one.folder))
        for one in version.foreign
    ]
    reports = sorted(version.folder.glob(f"{ENV_CHECKS}/*.json")) if version.env_checks else []
    of_hosts = _stored(ENV_CHECKS, "What env_check said beside the sets", version.folder / ENV_CHECKS, reports)
    return [*own, *imported, *([of_hosts] if reports else [])]


def data_figures(version: Version) -> Mapping[str, Figures]:
    """Return how many files there are, and their bytes, in all and of each set."""
    found = stored_files(version)
    return {"all": {"sets": len(version.sets), "imported": len(version.foreign), **counts(found)}} | {
        one.name: {**counts([one]), "bytes_of": dict(one.sizes)} for one in found
    }


def counts(found: Sequence[StoredFiles]) -> Mapping[str, int]:
    """Return the number of files, and the sum of their bytes."""
    return {"files": sum(len(one.sizes) for one in found), "bytes": sum(sum(one.sizes.values()) for one in found)}


def _stored(name: str, title: str, folder: Path, paths: Sequence[Path]) -> StoredFiles:
    sums = folder / SUMS
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    return StoredFiles(name, title, files, sums if files and sums.is_file() else None)


def _members(folder: Path) -> list[Path]:
    """What a campaign's folder has to publish: not its raw files, which hold paths of the machine."""
    return members(folder) or sorted(folder.glob("*.json"))
