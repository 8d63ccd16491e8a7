"""Read the folder of a finished campaign. Refuses what cannot be published."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypedDict

from reports.sets.machines import Place, places
from reports.sets.version import ResultSet, Version, read_version
from suite.errors import NotFitToSubmit
from suite.files.json_file import read_json
from suite.records.folders import (
    ALONE,
    CAMPAIGN_FILE,
    CASES,
    PLAN_FILE,
    RUN_LOG,
    TWINS,
    files_of_videos,
    first_names,
    json_files,
)
from suite.schema.record import CaseResult, RunRecord

FOLDERS: Final = (CASES, TWINS, ALONE)
SINGLE_FILES: Final = (PLAN_FILE, RUN_LOG, "upstream.json")


class Identity(TypedDict, total=False):
    """What the text of a pull request says of ``campaign.json``."""

    matrix: str | None
    capacity: str | None
    stack: str | None
    seed: int | None
    emulated_nodes: int | None
    host_label: str | None
    rounds: int | None
    precision: float | None
    max_rounds: int | None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A finished campaign: its folder, its ``campaign.json`` and its results."""

    folder: Path
    identity: Identity
    version: Version  # of this set alone

    @property
    def result_set(self) -> ResultSet:
        return self.version.sets[0]

    @property
    def results(self) -> tuple[CaseResult, ...]:
        return self.result_set.every

    @property
    def begun(self) -> tuple[RunRecord, ...]:
        return tuple(record for result in self.results for record in result.begun)

    @cached_property
    def place(self) -> Place:
        """The environment with the most GPUs, the first of several."""
        started = [place for place in places(self.results) if place.first_started_utc]
        return min(started, key=lambda place: (-len(place.environment.gpus), place.first_started_utc))

    @property
    def files(self) -> tuple[Path, ...]:
        """What is published, and nothing else."""
        below = (path for name in FOLDERS for path in json_files(self.folder / name))
        beside = (path for name in SINGLE_FILES if (path := self.folder / name).is_file())
        return (*below, *beside, *files_of_videos(self.folder))


def read_source(folder: Path) -> Source:
    """Read a campaign.

    Raises:
        NotFitToSubmit: it is no campaign, is unfinished, ran on no GPU, or is not of one known commit.
        StoreError: a file cannot be read or is not valid.
    """
    identity = read_json(folder / CAMPAIGN_FILE, Identity, next_step="Take the file from a copy of the folder.")
    if identity is None:
        raise NotFitToSubmit(
            f"{folder} has no {CAMPAIGN_FILE}, so it is no campaign, or a copy of a part. Name the --out of `nox -s"
            " bench`, such as runs/full."
        )
    if not (folder / CASES).is_dir():
        raise NotFitToSubmit(
            f"{folder} has no stored result. Run the same `nox -s bench` again: it goes on where it stopped."
        )
    source = Source(folder=folder, identity=identity, version=read_version(folder, name=""))
    if source.result_set.plan is None:
        raise NotFitToSubmit(
            f"{folder} has no {PLAN_FILE}, so nobody can tell whether a configuration was left out. Run the same"
            " `nox -s bench` again: it writes the file, and runs only what is missing."
        )
    if missing := source.result_set.not_stored:
        raise NotFitToSubmit(
            f"{folder} is unfinished: {source.result_set.how_many_are_not_stored}: {first_names(missing)}. Run the same"
            " `nox -s bench` again: it goes on where it stopped. If the machine is gone, run `nox -s store` first."
        )
    _refuse_cpu(source)
    _refuse_commits(source.begun, folder)
    return source


def _refuse_cpu(source: Source) -> None:
    if not any(record.case.device == "cuda" and record.started_utc for record in source.begun):
        raise NotFitToSubmit(
            f"{source.folder} has no run on a GPU. On a CPU a speed means nothing, so there is nothing to publish."
            " Run `nox -s bench` on a machine with GPUs. Runs that show what a seed learns are added by hand, see"
            " CONTRIBUTING.md."
        )


def _refuse_commits(records: Iterable[RunRecord], folder: Path) -> None:
    commits = {(record.environment.git_commit, record.environment.git_dirty) for record in records}
    again = "Commit or undo the changes, and run `nox -s bench` into another folder with --out."
    if any(is_dirty for _, is_dirty in commits):
        raise NotFitToSubmit(
            f"{folder} has runs of a commit with local changes, so nobody else can run the same. {again}"
        )
    if any(commit is None or is_dirty is None for commit, is_dirty in commits):
        raise NotFitToSubmit(
            f"{folder} has runs that know no commit of labscale, so nobody else can run the same. Run `nox -s bench`"
            " from a git checkout, or from an image or bundle that was made from one."
        )
    if len(commits) > 1:
        names = ", ".join(sorted(str(commit) for commit, _ in commits))
        raise NotFitToSubmit(f"{folder} has runs of several commits: {names}. Run all of them from one commit.")
