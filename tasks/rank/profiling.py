"""Nsight Systems around single ranks: a rank starts itself again below ``nsys``, and names its phases by NVTX ranges.

The suite says by variables which ranks, and with which nsys. A profiled rank is slower than others; the round's record
says that it was, and no statistic counts it.
"""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

RANKS_VARIABLE: Final = "LABSCALE_PROFILE_RANKS"  # comma-separated
NSYS_VARIABLE: Final = "LABSCALE_NSYS"  # path of the program
BELOW_NSYS_VARIABLE: Final = "LABSCALE_BELOW_NSYS"  # set for the rank that nsys starts


def nsys_command(nsys: str, rank: int, run_dir: Path, program: Sequence[str]) -> list[str]:
    """``program`` below nsys: CUDA calls and NVTX ranges, no sampling of the CPU, which needs rights of its own."""
    report = run_dir / f"profile-rank-{rank}"  # nsys adds .nsys-rep
    options = ["--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", f"--output={report}"]
    return [nsys, "profile", *options, *program]


def begin_below_nsys(rank: int, run_dir: Path, program: Sequence[str]) -> None:
    """Become nsys with ``program`` when this rank is to be profiled and is not yet; else return."""
    ranks = os.environ.get(RANKS_VARIABLE, "")
    if not is_profiled() and str(rank) in ranks.split(","):
        os.environ[BELOW_NSYS_VARIABLE] = "1"
        command = nsys_command(os.environ[NSYS_VARIABLE], rank, run_dir, program)
        sys.stdout.flush()
        os.execv(command[0], command)  # noqa: S606  (the same process, so that torchrun still watches it)


def is_profiled() -> bool:
    """Whether nsys started this rank."""
    return BELOW_NSYS_VARIABLE in os.environ


class Ranges:
    """NVTX ranges of this thread, properly nested; nothing at all unless the rank is profiled."""

    def __init__(self) -> None:
        self.on = is_profiled()

    def push(self, name: str) -> None:
        if self.on:
            import torch

            torch.cuda.nvtx.range_push(name)

    def pop(self, count: int = 1) -> None:
        if self.on:
            import torch

            for _ in range(count):
                torch.cuda.nvtx.range_pop()

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call`` inside a range; ``call`` itself unless the rank is profiled."""
        if not self.on:
            return call

        @functools.wraps(call)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            self.push(name)
            try:
                return call(*args, **kwargs)
            finally:
                self.pop()

        return ranged
