"""Where submitted results go, and how they get there: the version, the set, and all of it or nothing."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reports.figures import tables
from reports.sets.machines import Place, plain_name
from reports.sets.manifest import MANIFEST, Entry, read_manifest
from reports.sets.version import version_order
from reports.verification.hashes import SIGNATURE, write_hashes
from suite.errors import StoreError

THIS_MONTH: Final = "new"
VERSION: Final = re.compile(r"\d{4}\.\d{2}")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A set that is not there yet."""

    version: Path
    entry: Entry

    @property
    def folder(self) -> Path:
        return self.version / self.entry.folder


def target_of(
    place: Place,
    *,
    into: Path,
    version: str | None = None,
    name: str | None = None,
    title: str | None = None,
    contributed_by: str | None = None,
    link: str | None = None,
) -> Target:
    """Fill in what was not given: the newest version, and a name and a title of GPUs and day.

    Raises:
        StoreError: the version has such a set already.
        ReportError: ``report.toml`` of the version is wrong.
    """
    folder = into / (_this_month() if version == THIS_MONTH else version or _newest(into))
    entry = Entry(
        folder=name or name_of(place),
        title=title or _free_title(place, folder),
        contributed_by=contributed_by,
        link=link,
    )
    target = Target(version=folder, entry=entry)
    if target.folder.exists():
        raise StoreError(
            f"{target.folder} exists, and results are never overwritten. If these are the same results, they are"
            " submitted already; else choose another name with --name."
        )
    return target


def name_of(place: Place) -> str:
    """Return ``h200x4-20261122-0828``: the GPUs, and when the first run started in UTC."""
    counts = Counter(gpu.name.removeprefix("NVIDIA ") for gpu in place.environment.gpus)
    gpus = [f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}x{number}" for name, number in counts.items()]
    return "-".join([*gpus, f"{_start(place):%Y%m%d-%H%M}"])


def _free_title(place: Place, version: Path) -> str:
    """Add the time of day if the version has another set of that machine and day."""
    title = plain_name(place)
    folders = [path.name for path in version.iterdir() if path.is_dir()] if version.is_dir() else []
    taken = {entry.title for entry in read_manifest(version, folders)}
    return f"{title}, {_start(place):%H:%M} UTC" if title in taken else title


def _start(place: Place) -> datetime:
    if place.first_started_utc is None:
        raise AssertionError("a place of a campaign with a run has a start")
    return datetime.fromisoformat(place.first_started_utc).astimezone(UTC)


def _newest(into: Path) -> str:
    versions = [path.name for path in into.iterdir() if path.is_dir() and VERSION.fullmatch(path.name)]
    return max(versions, key=version_order, default=_this_month())


def _this_month() -> str:
    return f"{datetime.now(UTC):%Y.%m}"


@contextmanager
def built(source: Path, content: Mapping[Path, bytes], target: Target) -> Iterator[Path]:
    """Yield the version with the new set, in a temporary folder beside the versions. Raises OSError.

    The folder has the version's name, and is gone after the block unless ``put_in_place`` moved it.
    """
    with TemporaryDirectory(prefix=".submit-", dir=target.version.parent, ignore_cleanup_errors=True) as temporary:
        version = Path(temporary) / target.version.name
        if target.version.is_dir():
            shutil.copytree(target.version, version, symlinks=True)
        for path, text in content.items():
            copy = version / target.entry.folder / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text)
        with (version / MANIFEST).open("a", encoding="utf-8") as manifest:
            manifest.write(manifest_entry(target.entry, is_first=not manifest.tell()))
        tables.write(version)
        write_hashes(version / target.entry.folder)
        (version / SIGNATURE).unlink(missing_ok=True)  # it is of the hashes before
        write_hashes(version)
        yield version


def put_in_place(version: Path, final: Path) -> None:
    """Move the built version to its place. What was there stays if that fails. Raises OSError."""
    if not final.exists():
        version.rename(final)
        return
    before = version.with_name(f"{version.name}-before")
    final.rename(before)
    try:
        version.rename(final)
    except BaseException:
        before.rename(final)
        raise


def manifest_entry(entry: Entry, *, is_first: bool) -> str:
    """Return the ``[[set]]``. JSON writes a line of text as TOML reads it."""
    values = {name: value for name, value in entry.model_dump(exclude_defaults=True).items() if value is not None}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "\n".join([*([] if is_first else [""]), "[[set]]", *lines, ""])
