"""The files that a site offers: each set's results as they are in git, and tables of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reports.figures.tables import content, tables
from reports.sets.version import Version
from reports.verification.first import WEAKNESSES
from reports.verification.hashes import SUMS, members
from suite.files.input_file import read_input

DATA_FOLDER: Final = "data"
ENV_CHECKS: Final = "env_check"  # folder of a version: what ``env_check --json`` printed beside its sets
TABLES: Final = ("figures.csv", "runs.csv", "runs.parquet", "iterations.parquet", "checks.parquet")


@dataclass(frozen=True)
class StoredFiles:
    """``files`` has paths by their names below the folder; ``sums`` is the file of their hashes, if there is one."""

    name: str
    title: str
    files: Mapping[str, Path]
    sums: Path | None


def stored_files(version: Version) -> Sequence[StoredFiles]:
    """Return those of every set, in the order of the version."""
    # Not the raw files of a campaign's folder, which hold paths of the machine.
    return [
        _stored(own.name or "results", own.title or "Results", own.folder, members(own.folder)) for own in version.sets
    ]


def env_check_files(version: Version) -> StoredFiles:
    """Return what env_check said beside the sets, which has no samples; its files may be none."""
    folder = version.folder / ENV_CHECKS
    paths = sorted(folder.glob("*.json"))
    return _stored(ENV_CHECKS, "What env_check said beside the sets", folder, paths)


def _stored(name: str, title: str, folder: Path, paths: Sequence[Path]) -> StoredFiles:
    sums = folder / SUMS
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    return StoredFiles(name, title, files, sums if files and sums.is_file() else None)


def files(version: Version) -> dict[str, bytes]:
    """Address below ``DATA_FOLDER`` -> content."""
    files_by_name = _of_all(version)
    for stored in (*stored_files(version), env_check_files(version)):
        paths = {**stored.files, **({SUMS: stored.sums} if stored.sums else {})}
        files_by_name |= {f"{stored.name}/{name}": read_input(path) for name, path in paths.items()}
    return files_by_name


def _of_all(version: Version) -> dict[str, bytes]:
    """The tables, and the list of weaknesses, without which a check of these files would name them again."""
    path = version.folder / WEAKNESSES
    known = {path.name: read_input(path)} if path.is_file() else {}
    names = (file.split(".") for file in TABLES)
    return {f"{name}.{suffix}": content(tables(version)[name], suffix) for name, suffix in names} | known


def write(version: Version, site: Path) -> None:
    for name, stored in files(version).items():
        path = site / DATA_FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored)
