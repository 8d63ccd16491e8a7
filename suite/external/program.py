"""Runs a program that may hang or die: with a time limit, all its children, and no pipe that could block."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

KILL_PATIENCE_S: Final = 5.0  # a process inside a hung kernel driver cannot be killed and is left behind

# "ended": by itself, with any exit code. "died": by a signal. "not_started": there is no such program, or no right.
End = Literal["ended", "died", "hung", "not_started"]


@dataclass(frozen=True, kw_only=True)
class ProgramRun:
    end: End
    exit_code: int | None
    signal: str | None  # "SIGABRT", when it died
    stdout: str
    stderr: str  # the system's reason, when it did not start
    wall_s: float


def run_program(argv: Sequence[str | Path], *, environ: Mapping[str, str], timeout_s: float) -> ProgramRun:
    """Run ``argv`` for at most ``timeout_s``, then kill it and its children."""
    start_s = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )
        except OSError as error:
            reason = f"{argv[0]}: {error.strerror}"
            return ProgramRun(end="not_started", exit_code=None, signal=None, stdout="", stderr=reason, wall_s=0.0)
        exit_code = _wait(process, timeout_s)
        _kill_group(process)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    is_dead = exit_code is not None and exit_code < 0
    return ProgramRun(
        end="hung" if exit_code is None else "died" if is_dead else "ended",
        exit_code=exit_code,
        signal=signal.Signals(-exit_code).name if exit_code is not None and is_dead else None,
        stdout=texts[0],
        stderr=texts[1],
        wall_s=time.monotonic() - start_s,
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    except BaseException:  # on Ctrl-C it must not keep running
        _kill_group(process)
        raise


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # all have ended
    try:
        process.wait(KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return  # it hangs inside the kernel
