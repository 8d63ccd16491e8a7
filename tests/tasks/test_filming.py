"""Which steps of a training are filmed, and the MP4 file, of which ``tests/golden/film`` has one from a worker."""

from collections.abc import Sequence
from pathlib import Path
from struct import pack, unpack_from

import pytest

from tasks.film.filming import Schedule
from tasks.film.mp4 import TIMESCALE, mp4_of
from tests.fixtures.results.films import FILM, facts_of_film

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf"}


def boxes_of(content: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Name of each box -> where its content begins in the file, and the content."""
    boxes: dict[bytes, tuple[int, bytes]] = {}

    def read(start: int, end: int) -> None:
        while start < end:
            size, name = unpack_from(">I4s", content, start)
            assert 8 <= size <= end - start, name
            boxes[name] = (start + 8, content[start + 8 : start + size])
            if name in CONTAINERS:
                read(start + 8, start + size)
            start += size

    read(0, len(content))
    return boxes


def assert_whole(path: Path, *, frames: int, duration_s: float, size_px: tuple[int, int]) -> None:
    """Check sizes, durations, and that the table of frames covers exactly the frames that are there."""
    content = path.read_bytes()
    boxes = boxes_of(content)
    assert next(iter(boxes)) == b"ftyp"
    assert b"av01" in boxes[b"ftyp"][1]
    start, data = boxes[b"mdat"]
    assert unpack_from(">2I", boxes[b"stco"][1], 4) == (1, start)
    _, count = unpack_from(">2I", boxes[b"stsz"][1], 4)
    sizes = unpack_from(f">{count}I", boxes[b"stsz"][1], 12)
    assert (count, sum(sizes)) == (frames, len(data))
    _, of_frames, delta = unpack_from(">3I", boxes[b"stts"][1], 4)
    assert (of_frames, delta * frames / TIMESCALE) == (frames, pytest.approx(duration_s))
    assert unpack_from(">2I", boxes[b"mvhd"][1], 12) == (TIMESCALE, delta * frames)
    assert unpack_from(">2H", boxes[b"stsd"][1], 8 + 8 + 24) == size_px
    assert b"av1C" in boxes[b"stsd"][1]


def test_the_film_in_git_is_a_whole_file() -> None:
    facts = facts_of_film()
    size_px = facts.width_px, facts.height_px
    assert_whole(FILM / "film.mp4", frames=facts.frames, duration_s=facts.duration_s, size_px=size_px)


def test_what_is_no_animated_avif_is_refused() -> None:
    with pytest.raises(ValueError, match="no box moov"):
        mp4_of(b"not a film at all", width_px=640, height_px=360, frame_s=0.1)
    with pytest.raises(ValueError, match="no box trak"):
        mp4_of(pack(">I4s", 8, b"moov"), width_px=640, height_px=360, frame_s=0.1)


@pytest.mark.parametrize(
    ("steps", "step_s", "filmed"),
    [
        (1600, 1 / 60, range(1600 - 300 + 1, 1600, 2)),  # the last five seconds, at thirty frames a second
        (48, 1 / 60, range(1, 48, 2)),
        (400, 0.1, range(350, 400)),  # a step that lasts longer than a frame is one
        (3, 20.0, [2]),
    ],
)
def test_the_last_seconds_are_filmed(steps: int, step_s: float, filmed: Sequence[int]) -> None:
    plan = Schedule(steps=steps, step_s=step_s)
    assert [step for step in range(steps + 10) if plan.is_filmed(step)] == list(filmed)
    assert plan.frame_s == pytest.approx(step_s * plan.every)
