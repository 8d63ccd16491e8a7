"""Where submitted results go: the version, the set's name and title, and whose it is."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reports.analysis.environments import Place, plain_name
from reports.sets.manifest import Entry, read_manifest
from reports.sets.version import version_order
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
    found = Target(version=folder, entry=entry)
    if found.folder.exists():
        raise StoreError(
            f"{found.folder} exists, and results are never overwritten. If these are the same results, they are"
            " submitted already; else choose another name with --name."
        )
    return found


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
