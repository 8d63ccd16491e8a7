"""Ends processes when their parent ends, even by SIGKILL. The kernel does it: prctl(2), Linux."""

import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

NOX_PID: Final = "LABSCALE_NOX_PID"  # set by the noxfile
_PID: Final = re.compile("[0-9]{1,9}")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)  # loaded before any fork
_PR_SET_PDEATHSIG: Final = 1


def end_with_parent(signal_number: signal.Signals = signal.SIGTERM) -> None:
    """Ask the kernel for a signal when the thread that started this process ends; that thread must wait for it.

    Used as ``preexec_fn``, or called by the process itself.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number)


def end_with_nox() -> None:
    """End this process by SIGTERM when nox, which started it, ends.

    Without nox this does nothing: a background process of a shell continues after the shell.
    """
    nox_pid = os.environ.pop(NOX_PID, None)  # children of this process have another parent
    if nox_pid is None or not _PID.fullmatch(nox_pid):
        return
    end_with_parent()
    if os.getppid() != int(nox_pid) and not Path(f"/proc/{nox_pid}").exists():  # nox ended before
        signal.raise_signal(signal.SIGTERM)


def run(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and capture its output; ``env`` is added to this process's environment."""
    return subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
        preexec_fn=end_with_parent,
    )
