"""Profiles single ranks with Nsight Systems: a rank restarts itself under ``nsys`` and marks its phases as NVTX ranges.

Variables name the ranks and the nsys program. A profiled rank is slower than others, so the round's record names it and
no statistic counts the round.
"""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

RANKS_VARIABLE: Final = "LABSCALE_PROFILE_RANKS"  # comma-separated
NSYS_VARIABLE: Final = "LABSCALE_NSYS"  # path of the nsys program
BELOW_NSYS_VARIABLE: Final = "LABSCALE_BELOW_NSYS"  # set for the rank that nsys starts


def begin_below_nsys(rank: int, run_dir: Path, program: Sequence[str]) -> None:
    """Replace this process by nsys with ``program`` if the rank is to be profiled and is not yet; else return."""
    ranks = os.environ.get(RANKS_VARIABLE, "")
    if not is_profiled() and str(rank) in ranks.split(","):
        os.environ[BELOW_NSYS_VARIABLE] = "1"
        nsys, report = os.environ[NSYS_VARIABLE], run_dir / f"profile-rank-{rank}"  # nsys adds .nsys-rep
        # CPU sampling would need extra rights.
        options = ["--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"]
        sys.stdout.flush()
        # The process id stays, so torchrun still watches it.
        os.execv(nsys, [nsys, "profile", *options, f"--output={report}", *program])  # noqa: S606


def is_profiled() -> bool:
    """Whether nsys started this rank."""
    return BELOW_NSYS_VARIABLE in os.environ


class Ranges:
    """Nested NVTX ranges of this thread; does nothing unless the rank is profiled."""

    def __init__(self) -> None:
        self._nvtx: Any = None
        if is_profiled():
            import torch

            self._nvtx = torch.cuda.nvtx

    def push(self, name: str) -> None:
        if self._nvtx:
            self._nvtx.range_push(name)

    def pop(self, count: int = 1) -> None:
        for _ in range(count if self._nvtx else 0):
            self._nvtx.range_pop()

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``call`` in a range; return ``call`` itself unless the rank is profiled."""
        if not self._nvtx:
            return call

        @functools.wraps(call)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            self.push(name)
            try:
                return call(*args, **kwargs)
            finally:
                self.pop()

        return ranged
