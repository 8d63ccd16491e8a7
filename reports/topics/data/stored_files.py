"""What is stored of each set, and of what env_check said beside them, with sizes.

The tables and lists of a whole version, and the hashes of a set, are offered besides, without a size and counted
nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reports.sets.env_checks import ENV_CHECKS
from reports.sets.version import Version
from reports.verification.hashes import SUMS, members


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
    """Return those of every set, in the order of the version."""
    return [
        _stored(one.name or "results", one.title or "Results", one.folder, _members(one.folder)) for one in version.sets
    ]


def env_check_files(version: Version) -> StoredFiles:
    """Return what env_check said beside the sets, which has no samples; its files may be none."""
    folder = version.folder / ENV_CHECKS
    paths = sorted(folder.glob("*.json")) if version.env_checks else []
    return _stored(ENV_CHECKS, "What env_check said beside the sets", folder, paths)


def with_env_checks(version: Version) -> Sequence[StoredFiles]:
    """Return all of them."""
    of_hosts = env_check_files(version)
    return [*stored_files(version), *([of_hosts] if of_hosts.files else [])]


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
