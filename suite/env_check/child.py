"""Start a probe in a process of its own: a driver may abort or hang, and that is then a typed finding.

Nothing of the driver stack is ever loaded into labscale's own process.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
KILL_PATIENCE_S: Final = 2.0  # a process inside a hung kernel driver cannot be killed: it is then left behind
STDERR_CHARACTERS: Final = 4000  # kept of what the probe and its drivers said

# "answered": ended with exit code 0 and an answer. "died": by a signal. "failed": any other end.
End = Literal["answered", "died", "hung", "failed"]


@dataclass(frozen=True, kw_only=True)
class ProbeRun:
    """How a probe ended and the last thing it said."""

    end: End
    signal: str | None  # "SIGABRT", when it died
    exit_code: int | None
    answer: Mapping[str, Any]  # the last complete answer, also of a probe that died later; empty when there is none
    stderr: str  # the tail
    wall_s: float


def how_it_ended(end: End, signal_name: str | None, exit_code: int | None) -> str:
    """What a process did that did not answer, as a verb."""
    return "hangs" if end == "hung" else f"ends by {signal_name or f'exit code {exit_code}'}"


def run_probe(module: str, *arguments: str, environ: Mapping[str, str], timeout_s: float) -> ProbeRun:
    """Run ``python -m suite.env_check.<module> <arguments>`` for at most ``timeout_s``."""
    start_s = time.monotonic()
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):  # files: no pipe that an orphan holds open
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"suite.env_check.{module}", *arguments],
            env={**environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), environ.get("PYTHONPATH"))))},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            exit_code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            exit_code = None
        finally:
            _end_group(process)
        return _describe(exit_code, _text(output), _text(errors), time.monotonic() - start_s)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the probe and of the processes it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of them are gone
    try:
        process.wait(KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return  # inside the kernel; the caller reports a hung driver


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _describe(exit_code: int | None, output: str, errors: str, wall_s: float) -> ProbeRun:
    answer = last_answer(output)
    end: End
    if exit_code is None:
        end = "hung"
    elif exit_code < 0:
        end = "died"
    else:
        end = "answered" if exit_code == 0 and answer else "failed"
    return ProbeRun(
        end=end,
        signal=signal.Signals(-exit_code).name if exit_code is not None and exit_code < 0 else None,
        exit_code=exit_code,
        answer=answer,
        stderr=errors[-STDERR_CHARACTERS:],
        wall_s=wall_s,
    )


def last_answer(output: str) -> Mapping[str, Any]:
    """The last complete JSON object in ``output``, empty when there is none. The probe's death may tear a line."""
    for line in reversed(output.splitlines()):
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(answer, dict):
            return answer
    return {}
