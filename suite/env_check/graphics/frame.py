"""Judges one rendered frame, of Vulkan or OpenGL: a triangle on a clear colour, every pixel checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.probes.run import End, how_it_ended, run_probe

SIZE: Final = 64  # width and height in pixels
TRIANGLE: Final = (51, 204, 102, 255)  # multiples of 1/5, which are exact in 8 bits
CLEAR: Final = (0, 0, 255, 255)
TRIANGLE_COLOUR: Final = tuple(value / 255 for value in TRIANGLE)
CLEAR_COLOUR: Final = tuple(value / 255 for value in CLEAR)
# Clip coordinates. The triangle covers the half of the frame to the left of and below the diagonal.
VERTICES: Final = (-1.0, -1.0, 1.0, -1.0, -1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class FrameSeen:
    """The result of the frame. Fields of steps that did not run are None."""

    end: End
    signal: str | None
    exit_code: int | None
    stage: str | None  # the step in progress when the probe ended
    error: str | None  # the library's own message, if it failed
    package_missing: str | None  # the Python package of the suite that is not installed
    device: str | None  # the renderer's name, from the driver
    is_software: bool | None
    wrong_pixels: int | None
    stderr: str
    wall_s: float


def count_wrong_pixels(rgba: bytes) -> int:
    """Count the pixels of ``rgba`` (rows from the top) with a wrong colour. Both colours are right on the diagonal."""
    if len(rgba) != SIZE * SIZE * 4:
        return SIZE * SIZE
    wrong = 0
    for row in range(SIZE):
        for column in range(SIZE):
            start = (row * SIZE + column) * 4
            wrong += tuple(rgba[start : start + 4]) not in _right_colours(row, column)
    return wrong


def _right_colours(row: int, column: int) -> tuple[tuple[int, ...], ...]:
    if row == column:
        return TRIANGLE, CLEAR
    return (TRIANGLE,) if row > column else (CLEAR,)


def read_frame(probe: str, *arguments: str, environ: Mapping[str, str], timeout_s: float) -> FrameSeen:
    """Render in a child process that runs the module ``probe``."""
    run = run_probe(probe, *arguments, environ=environ, timeout_s=timeout_s)
    answers = ("error", "package_missing", "device", "is_software", "wrong_pixels")
    answered: dict[str, Any] = {name: run.answer.get(name) for name in answers}
    return FrameSeen(**run.ending, **answered, stderr=run.stderr, wall_s=run.wall_s)


def judge_frame(seen: FrameSeen, api: str) -> Judgement:
    """Judge a frame. Right pixels from a software renderer are a fault too. ``api``: "EGL" or "Vulkan"."""
    subject = Subject(f"a frame rendered through {api} on a GPU, every pixel right", seen)
    first = f"repair what the checks of the {api} loader, drivers and devices name first"
    if seen.package_missing:
        return subject.warning(
            "frame_package_missing",
            f"no frame was rendered: the Python package {seen.package_missing} is not installed",
            f"install the suite's pinned packages, which include {seen.package_missing}",
        )
    if seen.end != "answered":
        return subject.failure(
            "driver_hung" if seen.end == "hung" else "driver_aborted",
            f"the process {how_it_ended(seen)} at: {seen.stage}",
            f"reinstall the driver (hung: look for Xid in dmesg); {first}",
        )
    if seen.error is not None:
        return subject.failure("no_context", f"{seen.stage}: {seen.error}", first)
    if seen.wrong_pixels:
        return subject.failure(
            "wrong_pixels",
            f"{seen.wrong_pixels} of {SIZE * SIZE} pixels are wrong, by {seen.device}",
            "this driver renders wrong pixels: install another version of it",
        )
    if seen.is_software:
        found = f"right pixels, but by software: {seen.device}"
        return subject.failure("software_renderer", found, f"no GPU's driver is in use: {first}")
    return subject.ok(f"{SIZE}x{SIZE} pixels right, by {seen.device}")
