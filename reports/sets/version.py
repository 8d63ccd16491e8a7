"""A version of the report: the result sets below one folder, read. The only reader of ``reports`` besides ``verify``.

A set is what one campaign stored: a folder with ``cases``. A version is a folder of sets; one set alone is a version
too, so that a report of a campaign that just ended looks the same. ``report.toml`` beside the sets says their titles,
their order and what they are for; a set that it does not name is shown after the others, under its folder's name.
"""

import gc
import os
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from reports.sets.campaign import Campaign
from reports.sets.machines import Machine, PlaceOfSet, machines
from reports.sets.manifest import Contributor, Entry, Role, SharedMachine, read_manifest
from suite.campaign.runs.upstream import Pair, read_pairs
from suite.errors import ReportError
from suite.files.wording import are, counted
from suite.records.folders import ALONE, StoredPlan, Video, intact_videos, read_plan
from suite.records.store import load_results
from suite.schema.record import CaseResult

VERSION_VARIABLE: Final = "LABSCALE_REPORT_VERSION"  # of a file that only a build of pages writes


@dataclass(frozen=True, kw_only=True)
class ResultSet:
    """``name`` is the folder's; empty when the folder is the whole report."""

    name: str
    title: str
    role: Role
    folder: Path
    campaign: Campaign
    pairs: tuple[Pair, ...] = ()  # beside upstream's own benchmark
    copies: tuple[CaseResult, ...] = ()  # of cases, measured alone to compare with turns
    contributor: Contributor | None = None  # None: the project's own
    shared_machine: SharedMachine = "no"
    witness: str | None = None  # a page that has a hash of the run log
    videos: Mapping[str, Video] = field(default_factory=dict)  # by case id; only those whose files are unchanged

    @property
    def every(self) -> tuple[CaseResult, ...]:
        """All that was measured, with the repeats of baselines and the copies that ran alone."""
        return (*self.campaign.with_twins, *self.copies)

    @cached_property
    def plan(self) -> StoredPlan | None:
        """None without one. Raises StoreError if it cannot be read."""
        return read_plan(self.folder)

    @property
    def not_stored(self) -> list[str]:
        """The planned configurations that have no result, and no reason for it."""
        if self.plan is None:
            return []
        stored = {result.case.case_id for result in self.every}
        return sorted(self.plan["configurations"].keys() - stored - self.plan.get("missing", {}).keys())

    @property
    def how_many_are_not_stored(self) -> str:
        planned, absent = len(self.plan["configurations"]) if self.plan else 0, len(self.not_stored)
        return f"{absent} of {counted(planned, 'planned configuration')} {are(absent)} not stored"


@dataclass(frozen=True, kw_only=True, eq=False)
class Version:
    """``older`` are the versions that this one can be compared with, newest first. Equal is only the same object."""

    name: str
    folder: Path
    sets: tuple[ResultSet, ...]
    older: tuple["Version", ...] = field(default=(), repr=False)

    @property
    def is_campaign(self) -> bool:
        """Whether it is what ``bench`` wrote, and no version: its report has no guide and nothing to cite."""
        return [result_set.name for result_set in self.sets] == [""]

    @property
    def shown(self) -> tuple[ResultSet, ...]:
        """The sets that are meant for the first page; where none is, every set that is not archived."""
        kept = tuple(result_set for result_set in self.sets if result_set.role != "archive")
        return tuple(result_set for result_set in kept if result_set.role == "scaling") or kept

    @cached_property
    def scaling(self) -> tuple[ResultSet, ...]:
        """Sets whose series are shown on the pages of tasks."""
        return tuple(result_set for result_set in self.shown if result_set.campaign.has_speeds)

    @property
    def without_speeds(self) -> tuple[ResultSet, ...]:
        """Sets that say what worked, and nothing about speed."""
        return tuple(result_set for result_set in self.shown if not result_set.campaign.has_speeds)

    @cached_property
    def machines(self) -> tuple[Machine, ...]:
        """Every machine that a run was on, the one that ran first first."""
        return machines(
            PlaceOfSet(set_name=own.name, whose=own.contributor.name if own.contributor else None, place=place)
            for own in self.sets
            for place in own.campaign.places
        )


def read_version(folder: Path, *, name: str, older: Sequence[Version] = ()) -> Version:
    """Read every set below ``folder``, or ``folder`` as the only one.

    Raises ReportError when there is nothing to read or the manifest is wrong, StoreError for a result that is invalid.
    """
    if not folder.is_dir():
        raise ReportError(f"There is no folder {folder}. Name the folder that `nox -s bench` wrote.")
    folders = [path for path in sorted(folder.iterdir()) if (path / "cases").is_dir()]
    if folder.name == "cases":  # bench names the cases themselves
        folder = folder.parent
    is_alone = (folder / "cases").is_dir() or not folders
    entries = [Entry(folder=".")] if is_alone else read_manifest(folder, [path.name for path in folders])
    return Version(
        name=name,
        folder=folder,
        sets=tuple(_read_set(folder / entry.folder, entry, is_alone=is_alone) for entry in entries),
        older=tuple(older),
    )


def versions_below(folder: Path) -> Iterator[Version]:
    """Read each version below a folder such as ``reports/results``, the oldest first."""
    names = (path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    has_sets = (path for path in names if any((below / "cases").is_dir() for below in path.iterdir()))
    for path in sorted(has_sets, key=lambda path: version_order(path.name)):
        yield read_version(path, name=path.name)


def version_order(name: str) -> list[tuple[int, int | str]]:
    """Numbers in a version's name count as numbers, so 2026.9 is before 2026.11."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|\D+", name)]


@cache
def version_of_page() -> Version:
    """The version that the build has read, for the cells of a page: it is handed on in a file."""
    path = os.environ.get(VERSION_VARIABLE)
    if path is None:
        raise ReportError(
            f"The page does not know its results: the variable {VERSION_VARIABLE} is not set."
            " Build the page with `nox -s report -- RESULTS_DIR`."
        )
    version: Version = pickle.loads(Path(path).read_bytes())  # noqa: S301  of the process that started this one
    gc.freeze()  # all of it is kept to the end, and each collection would look through its millions of parts
    return version


def hand_on(version: Version, path: Path) -> dict[str, str]:
    """Write the version for the cells of its pages; return what their environment has to have."""
    path.write_bytes(pickle.dumps(version))
    return {VERSION_VARIABLE: str(path)}


def _read_set(folder: Path, entry: Entry, *, is_alone: bool) -> ResultSet:
    """``is_alone``: the folder is the whole report, which has no manifest."""
    name, title = ("", "") if is_alone else (entry.folder, entry.full_title)
    twins = load_results(folder / "a_a") if (folder / "a_a").is_dir() else ()
    return ResultSet(
        name=name,
        title=title,
        role=entry.role,
        folder=folder,
        campaign=Campaign(results=tuple(load_results(folder)), twins=tuple(twins), shows_labels=is_alone),
        pairs=read_pairs(folder / "upstream.json"),
        copies=tuple(load_results(folder / ALONE)) if (folder / ALONE).is_dir() else (),
        contributor=entry.contributor,
        shared_machine=entry.shared_machine,
        witness=entry.witness,
        videos=intact_videos(folder),
    )
