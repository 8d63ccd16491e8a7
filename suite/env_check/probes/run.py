"""Starts a probe in its own process, so that a driver's abort or hang becomes a typed finding.

labscale never loads a driver into its own process.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from suite.external.program import run_program
from suite.files.paths import ROOT, import_path
from suite.schema.rank_protocol import last_answer

STDERR_CHARACTERS: Final = 4000  # kept of the standard error of the probe and its drivers

# "answered": exit code 0 and an answer. "died": ended by a signal. "hung": timed out. "failed": any other end.
End = Literal["answered", "died", "hung", "failed"]


class Ended(Protocol):
    """The end of a process."""

    @property
    def end(self) -> End: ...
    @property
    def signal(self) -> str | None: ...  # "SIGABRT", if it died
    @property
    def exit_code(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class ProbeRun:
    """The end of a probe, and its last answer."""

    end: End
    signal: str | None
    exit_code: int | None
    answer: Mapping[str, Any]  # the last complete one, even if the probe died later; empty without an answer
    stderr: str  # its end
    wall_s: float

    @property
    def ending(self) -> dict[str, Any]:
        """The end as a JSON object. ``stage``: the call that was running then."""
        return {"end": self.end, "signal": self.signal, "exit_code": self.exit_code, "stage": self.answer.get("stage")}


def how_it_ended(process: Ended) -> str:
    """Return the end of a process without an answer as a verb: ``"hangs"``, ``"ends by SIGABRT"``."""
    return "hangs" if process.end == "hung" else f"ends by {process.signal or f'exit code {process.exit_code}'}"


def run_probe(module: str, *arguments: str, environ: Mapping[str, str], timeout_s: float) -> ProbeRun:
    """Run ``python -m suite.env_check.<module> <arguments>`` for at most ``timeout_s``."""
    run = run_program(
        (sys.executable, "-m", f"suite.env_check.{module}", *arguments),
        environ={**environ, **import_path(ROOT, environ.get("PYTHONPATH"))},
        timeout_s=timeout_s,
    )
    answer = last_answer(run.stdout) or {}
    is_answer = run.exit_code == 0 and bool(answer)
    end: End = run.end if run.end in ("died", "hung") else "answered" if is_answer else "failed"
    return ProbeRun(
        end=end,
        signal=run.signal,
        exit_code=run.exit_code,
        answer=answer,
        stderr=run.stderr[-STDERR_CHARACTERS:],
        wall_s=run.wall_s,
    )
