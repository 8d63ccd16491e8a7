"""Telemetry beside a run: a sampler in a process of its own, that is never a reason for the run to fail."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from suite.records.telemetry.file import SAMPLER_LOG
from suite.schema.record import Case

_PROJECT_ROOT: Final = Path(__file__).resolve().parents[2]
_PATIENCE_S: Final = 2.0  # for the last sample


@contextmanager
def sampling(run_dir: Path, case: Case, *, visible_gpus: str | None = None) -> Iterator[None]:
    """Sample this host while the block runs, see ``telemetry_sampler``; when it is left, the sampler is gone.

    ``visible_gpus`` is what the ranks have as CUDA_VISIBLE_DEVICES, where that is not the caller's own: other GPUs of
    the host may work for other rounds.
    """
    with beside(sampler_argv(run_dir, case), run_dir / SAMPLER_LOG, visible_gpus=visible_gpus):
        yield


@contextmanager
def beside(argv: Sequence[str], log_path: Path, *, visible_gpus: str | None = None) -> Iterator[None]:
    """Run a sampler while the block runs."""
    sampler = _start(argv, log_path, visible_gpus)
    try:
        yield
    finally:
        if sampler is not None:
            _end(sampler)


def sampler_argv(run_dir: Path, case: Case) -> tuple[str, ...]:
    """The sampler of one node, to be run where ``suite`` can be imported; it ends when its stdin closes.

    That of one of several nodes has to have ``--node=N`` added.
    """
    num_gpus = case.nproc_per_node if case.device == "cuda" else 0
    program = (sys.executable, "-m", "suite.launch.telemetry_sampler")
    return (*program, str(run_dir.absolute()), f"--gpus={num_gpus}", f"--ranks={case.nproc_per_node}")


def _start(argv: Sequence[str], log_path: Path, visible_gpus: str | None) -> subprocess.Popen[bytes] | None:
    visible = {} if visible_gpus is None else {"CUDA_VISIBLE_DEVICES": visible_gpus}
    with log_path.open("wb") as log:
        try:
            return subprocess.Popen(
                argv,
                cwd=_PROJECT_ROOT,
                env={**os.environ, **visible},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal reaches labscale alone
            )
        except OSError as error:
            log.write(f"the sampler cannot be started: {error}\n".encode())
            return None


def _end(sampler: subprocess.Popen[bytes]) -> None:
    """Close the sampler's stdin, wait for its last sample, then kill it."""
    try:
        sampler.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return
    finally:
        _kill(sampler)


def _kill(sampler: subprocess.Popen[bytes]) -> None:
    """End it at once; only one that hangs inside a driver goes on, until the driver answers."""
    if sampler.poll() is not None:
        return
    sampler.kill()
    try:
        sampler.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return
