"""Videos of cases, stored beside their results: ``videos/<case>.mp4`` with a poster, and ``videos.json``."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from suite.errors import StoreError
from suite.files.input_file import read_input
from suite.files.json_file import read_json, replace_json

FOLDER: Final = "videos"
LIST: Final = "videos.json"
VIDEO_SUFFIX: Final = ".mp4"
POSTER_SUFFIX: Final = ".jpg"
_NEXT_STEP: Final = "Move it away; the same `nox -s bench -- --video` writes it again."


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
    return root / FOLDER / f"{case_id}{VIDEO_SUFFIX}"


def poster_path(root: Path, case_id: str) -> Path:
    return root / FOLDER / f"{case_id}{POSTER_SUFFIX}"


def read_videos(root: Path) -> dict[str, Video]:
    """Return the videos of a set or a campaign by case id. Raises StoreError if their list is not readable."""
    return read_json(root / LIST, dict[str, Video], next_step=_NEXT_STEP) or {}


def intact_videos(root: Path) -> dict[str, Video]:
    """Return the videos whose files are those that were filmed. Raises StoreError as ``read_videos``."""
    return {case_id: video for case_id, video in read_videos(root).items() if _is_intact(root, case_id, video)}


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
    replace_json({name: asdict(listed[name]) for name in sorted(listed)}, root / LIST)


def files_of_videos(root: Path) -> list[Path]:
    """Return the files of the videos in ``root``, their list first. Raises StoreError as ``read_videos``."""
    named = [path for name in read_videos(root) for path in (video_path(root, name), poster_path(root, name))]
    return [path for path in (root / LIST, *named) if path.is_file()]


def _is_intact(root: Path, case_id: str, video: Video) -> bool:
    expected = {video_path(root, case_id): video.sha256, poster_path(root, case_id): video.poster_sha256}
    return all(path.is_file() and _sha256(read_input(path)) == sha256 for path, sha256 in expected.items())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
