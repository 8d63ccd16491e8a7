"""The files of a folder of results: its sets, its cases, and the videos of cases.

Folders are not walked by ``rglob``, which silently skips those that it may not read.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from pydantic import with_config

from suite.errors import StoreError
from suite.files.input_file import read_input
from suite.files.json_file import STRICT, read_json, replace_json
from suite.schema.rank_protocol import CONFIGURATION_FILE

CASES: Final = "cases"
TWINS: Final = "a_a"  # the repeats of the baselines, kept out of the results: a report would take them for cases
ALONE: Final = "alone"  # copies that run alone, to compare with rounds in turns; kept out of the results too
RAW: Final = "raw"  # the files of each round of a campaign
CAMPAIGN_FILE: Final = "campaign.json"  # describes the campaign of a folder
PLAN_FILE: Final = "plan.json"  # the cases that a campaign was to measure
RUN_LOG: Final = "runs.log"  # a line for each run that ended, each with the hash of the line before
MAX_NAMED: Final = 5


@with_config(STRICT)
class StoredPlan(TypedDict):
    """The content of ``PLAN_FILE``: the number of rounds by case id, and why a case of a published set is not there."""

    configurations: dict[str, int]
    missing: NotRequired[dict[str, str]]


def read_plan(folder: Path) -> StoredPlan | None:
    """Return the plan of a set or a campaign, None without one. Raises StoreError if it cannot be read."""
    return read_json(folder / PLAN_FILE, StoredPlan, next_step="Move it away; the same `nox -s bench` writes it again.")


def case_files(folder: Path) -> list[Path]:
    """Return every JSON file below ``folder/cases``, or below ``folder`` if there is no set at or below it, sorted.

    Raises StoreError if ``folder`` contains sets but is none, contains a campaign without a stored case, or cannot be
    read.
    """
    sets = set_folders(folder)
    if sets and folder not in sets:
        raise StoreError(
            f"{folder} is not one set of results; below it there are"
            f" {first_names([path.relative_to(folder).as_posix() for path in sets])}."
            f" Name one set, for example {sets[0]}."
        )
    files = json_files(folder / CASES if sets else folder)
    if not (sets and files):
        _refuse_campaigns(json_files(folder))
    return files


def _refuse_campaigns(files: Sequence[Path]) -> None:
    """Raise StoreError for a file of a campaign: the files of its rounds are no cases."""
    for path in files:
        if path.name == CAMPAIGN_FILE:
            root = path.parent
        elif path.name in (CONFIGURATION_FILE, "record.json"):
            root = next((folder.parent for folder in path.parents if folder.name == RAW), path.parent)
        else:
            continue
        raise StoreError(
            f"{root} is a campaign with no stored result yet. Run the same `nox -s bench` again to go on with"
            f" it, or store the runs that have ended with `nox -s store -- {shlex.quote(str(root))}`."
        )


def set_folders(folder: Path) -> list[Path]:
    """Return every folder with ``cases`` in it, at or below ``folder``, sorted.

    A set within a set is left out: it is a report's download and repeats the same cases. Raises StoreError for a folder
    that cannot be read.
    """
    sets = []
    for root, folders, names in folder.walk(on_error=_refuse_unreadable):
        # A link to a folder is among the names.
        if CASES in (*folders, *names) and any((root / CASES).walk(on_error=_refuse_unreadable)):
            sets.append(root)
            folders.clear()
    return sorted(sets)


def json_files(folder: Path) -> list[Path]:
    """Return all below ``folder``, sorted; none if it is missing. Raises StoreError for an unreadable folder."""
    paths = (root / name for root, _, names in folder.walk(on_error=_refuse_unreadable) for name in names)
    return sorted(path for path in paths if path.suffix == ".json")


def _refuse_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # a missing folder has no files
        raise StoreError(
            f"{error.filename} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from error


def first_names(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


# ---- videos, stored beside the results: videos/<case>.mp4 with a poster, and videos.json ----


VIDEOS: Final = "videos"
VIDEO_LIST: Final = "videos.json"
_FILM_AGAIN: Final = "Move it away; the same `nox -s bench -- --video` writes it again."


@dataclass(frozen=True, kw_only=True)
class Facts:
    """How a video was made; ``tasks.film.filming`` writes it. ``duration_s`` is simulated time, shown as fast."""

    width_px: int
    height_px: int
    frames: int
    duration_s: float
    environments: int
    versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Video(Facts):
    sha256: str
    poster_sha256: str


def video_path(root: Path, case_id: str) -> Path:
    return root / VIDEOS / f"{case_id}.mp4"


def poster_path(root: Path, case_id: str) -> Path:
    return root / VIDEOS / f"{case_id}.jpg"


def read_videos(root: Path) -> dict[str, Video]:
    """Return the videos of a set or a campaign by case id. Raises StoreError if their list is not readable."""
    return read_json(root / VIDEO_LIST, dict[str, Video], next_step=_FILM_AGAIN) or {}


def intact_videos(root: Path) -> dict[str, Video]:
    """Return the videos whose files are those that were filmed. Raises StoreError as ``read_videos``."""

    def is_intact(path: Path, sha256: str) -> bool:
        return path.is_file() and _sha256(read_input(path)) == sha256

    return {
        case_id: video
        for case_id, video in read_videos(root).items()
        if is_intact(video_path(root, case_id), video.sha256)
        and is_intact(poster_path(root, case_id), video.poster_sha256)
    }


def store_video(root: Path, case_id: str, facts: Facts, *, video: bytes, poster: bytes) -> None:
    """Store a video with its poster, in place of an earlier one. Raises StoreError if a file cannot be written."""
    files = {video_path(root, case_id): video, poster_path(root, case_id): poster}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise StoreError(
            f"{error.filename} cannot be written: {error.strerror}. Check space and permissions."
        ) from error
    stored = Video(**asdict(facts), sha256=_sha256(video), poster_sha256=_sha256(poster))
    listed = {**read_videos(root), case_id: stored}
    replace_json({name: asdict(listed[name]) for name in sorted(listed)}, root / VIDEO_LIST)


def files_of_videos(root: Path) -> list[Path]:
    """Return the files of the videos in ``root``, their list first. Raises StoreError as ``read_videos``."""
    named = [path for name in read_videos(root) for path in (video_path(root, name), poster_path(root, name))]
    return [path for path in (root / VIDEO_LIST, *named) if path.is_file()]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
