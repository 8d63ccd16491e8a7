"""Starts a probe in its own process, so that a driver's abort or hang becomes a typed finding.

labscale never loads a driver into its own process. A probe writes marked JSON objects, the last of which counts, so a
crash loses little. Here is also what both rendering probes draw: a triangle on a clear colour.
"""

import os
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from suite.external.program import run_program
from suite.files.paths import ROOT, import_path
from suite.schema.rank_protocol import answer_line, last_answer

STDERR_CHARACTERS: Final = 4000  # kept of the standard error of the probe and its drivers

# "answered": exit code 0 and an answer. "died": ended by a signal. "hung": timed out. "failed": any other end.
End = Literal["answered", "died", "hung", "failed"]
Answer = Callable[[object], None]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a probe ended."""

    end: End
    signal: str | None  # "SIGABRT", if it died
    exit_code: int | None
    stage: str | None = None  # the call that was running then

    @property
    def how(self) -> str:
        """The end without an answer as a verb: ``"hangs"``, ``"ends by SIGABRT"``."""
        return "hangs" if self.end == "hung" else f"ends by {self.signal or f'exit code {self.exit_code}'}"

    @property
    def driver_fault(self) -> str:
        """The word of a driver's fault that ended the probe without an answer."""
        return "driver_hung" if self.end == "hung" else "driver_aborted"


@dataclass(frozen=True, kw_only=True)
class ProbeRun(Ending):
    """The end of a probe, and its last answer."""

    answer: Mapping[str, Any]  # the last complete one, even if the probe died later; empty without an answer
    stderr: str  # its end
    wall_s: float

    def as_facts[Facts](self, kind: type[Facts], **facts: object) -> Facts:
        """Return those of the answer, the end and ``facts`` for which the dataclass ``kind`` has a field."""
        from pydantic import TypeAdapter  # noqa: PLC0415  (a third of a probe's start, which needs none)

        return TypeAdapter(kind).validate_python({**self.answer, **vars(self), **facts})


def run_probe(
    program: Literal["machine", "egl", "vulkan"],
    question: str,
    *arguments: str,
    environ: Mapping[str, str],
    timeout_s: float,
) -> ProbeRun:
    """Run ``python -m suite.env_check.probes.<program> <question> <arguments>`` for at most ``timeout_s``."""
    run = run_program(
        (sys.executable, "-m", f"suite.env_check.probes.{program}", question, *arguments),
        environ={**environ, **import_path(ROOT, environ.get("PYTHONPATH"))},
        timeout_s=timeout_s,
    )
    answer = last_answer(run.stdout) or {}
    is_answer = run.exit_code == 0 and bool(answer)
    return ProbeRun(
        end=run.end if run.end in ("died", "hung") else "answered" if is_answer else "failed",
        signal=run.signal,
        exit_code=run.exit_code,
        stage=answer.get("stage"),
        answer=answer,
        stderr=run.stderr[-STDERR_CHARACTERS:],
        wall_s=run.wall_s,
    )


def answer_with(questions: Mapping[str, Callable[..., None]]) -> None:
    """Run one of a probe's ``questions``, which the command line names, with a function that writes an answer.

    A loaded driver may print to standard output, so that goes to standard error.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a driver that aborts is a finding, not a core file
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def answer(facts: object) -> None:
        stream.write(answer_line(facts))
        stream.flush()

    questions[sys.argv[1]](answer, *sys.argv[2:])


class Progress:
    """What a probe has seen so far. It answers at every stage, so that a crash shows the call that was running."""

    def __init__(self, answer: Answer, stage: str, **facts: Any) -> None:
        self.facts: dict[str, Any] = facts
        self._answer = answer
        self.at(stage)

    def at(self, stage: str, **facts: Any) -> None:
        self.facts |= {"stage": stage, **facts}
        self._answer(self.facts)

    def add(self, **facts: Any) -> None:
        self.facts |= facts
        self._answer(self.facts)


SIZE: Final = 64  # width and height of the frame in pixels
TRIANGLE: Final = (51, 204, 102, 255)  # multiples of 1/5, which are exact in 8 bits
CLEAR: Final = (0, 0, 255, 255)
TRIANGLE_COLOUR: Final = tuple(value / 255 for value in TRIANGLE)
CLEAR_COLOUR: Final = tuple(value / 255 for value in CLEAR)
# Clip coordinates. The triangle covers the half of the frame to the left of and below the diagonal.
VERTICES: Final = (-1.0, -1.0, 1.0, -1.0, -1.0, 1.0)


def count_wrong_pixels(rgba: bytes) -> int:
    """Count the pixels of ``rgba`` (rows from the top) with a wrong colour. Both colours are right on the diagonal."""
    if len(rgba) != SIZE * SIZE * 4:
        return SIZE * SIZE
    wrong = 0
    for row in range(SIZE):
        for column in range(SIZE):
            start = (row * SIZE + column) * 4
            right = (TRIANGLE,) if row > column else (CLEAR,) if row < column else (TRIANGLE, CLEAR)
            wrong += tuple(rgba[start : start + 4]) not in right
    return wrong
