"""The files that a site offers: each set's results as they are in git, and tables of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from reports.figures.tables import content, tables
from reports.sets.env_checks import ENV_CHECKS
from reports.sets.version import Version
from reports.verification.hashes import SUMS, members
from reports.verification.weaknesses import WEAKNESSES
from suite.files.input_file import read_input


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


DATA_FOLDER: Final = "data"


@cache
def files(version: Version) -> dict[str, dict[str, bytes]]:
    """Title of a group -> address below ``DATA_FOLDER`` -> content."""
    groups = {"Tables of all runs and figures": _of_all(version)} if version.sets else {}
    for one in with_env_checks(version):
        paths = {**one.files, **({SUMS: one.sums} if one.sums else {})}
        groups[one.title] = {f"{one.name}/{name}": read_input(path) for name, path in paths.items()}
    return groups


def _of_all(version: Version) -> dict[str, bytes]:
    """The tables, and the list of weaknesses, without which a check of these files would name them again."""
    path = version.folder / WEAKNESSES
    known = {path.name: read_input(path)} if path.is_file() else {}
    formats = ("runs", "csv"), ("runs", "parquet"), ("iterations", "parquet"), ("checks", "parquet"), ("figures", "csv")
    return {f"{name}.{suffix}": content(tables(version)[name], suffix) for name, suffix in formats} | known


def write(version: Version, site: Path) -> None:
    for group in files(version).values():
        for name, stored in group.items():
            path = site / DATA_FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored)
