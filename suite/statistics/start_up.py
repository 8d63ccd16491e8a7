"""Measure how long a process takes until it trains, and tell cold starts from warm ones. Pure.

A start is cold if its round compiled kernels, and always if its case gives each round an empty kernel cache. Records
have the number of kernels, from the files in the caches. Old records lack it, and rounds that ran beside others share
the caches; there the time decides. Compiled kernels are kept between rounds, so a cold start takes more than
``COLD_FACTOR`` times as long as the shortest start of its case. A single such round is undecided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.schema.record import KernelCache, RankRecord, RunRecord
from suite.statistics.reduce import iteration_times_s

# Times of starts on H200s, relative to the shortest of their case (reports/results/2026.11): later rounds, which
# compile nothing, up to 1.56 (their host became faster); a first round that compiled nothing, 1.62; first rounds that
# compiled everything, 2.0 to 8.1; first rounds with an unknown number of kernels, up to 1.69.
COLD_FACTOR: Final = 1.75

Start = Literal["cold", "warm"]


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """One process from the first line of the worker to the end of its first iteration, slowest rank."""

    total_s: float  # phases, first iteration, and the time between: joining the ranks, the library's preparation
    kernels_compiled: int | None = None  # in the round, on the node with most; None: unknown
    kernel_cache: KernelCache = "kept"


def start_up(record: RunRecord) -> StartUp:
    """The start of a completed round. Raises ValueError as ``iteration_times_s`` does."""
    first_iteration_s = iteration_times_s(record)[0]
    return StartUp(
        total_s=max(_total_s(rank, first_iteration_s) for rank in record.ranks),
        kernels_compiled=_kernels_compiled(record),
        kernel_cache=record.case.kernel_cache,
    )


def _total_s(rank: RankRecord, first_iteration_s: float) -> float:
    """Start of a rank [s] by its own clock, which runs from ``imports_torch`` on; without it the sum of known parts.

    Parts of different ranks must not be added: a rank that is ready early waits in its first iteration.
    """
    start_s, time_s = (rank.samples.get(name, (None,))[0] for name in ("start_s", "iteration_time_s"))
    imports_s = rank.phases_s.get("imports_torch")
    if start_s is None or time_s is None or imports_s is None:
        return sum(rank.phases_s.values()) + first_iteration_s
    return imports_s + start_s + time_s


def _kernels_compiled(record: RunRecord) -> int | None:
    """Kernels that the round compiled; None if unknown or if other rounds used the same caches."""
    first_of_node = [rank for rank in record.ranks if rank.local_rank == 0]
    counts = [rank.kernels_compiled for rank in first_of_node if rank.kernels_compiled is not None]
    is_own = record.case.kernel_cache == "empty" or record.turns is None
    return max(counts) if is_own and counts and len(counts) == len(first_of_node) else None


def classify(starts: Sequence[StartUp]) -> tuple[Start | None, ...]:
    """Tell for each start of one case on one host whether it was cold or warm; None if undecided."""
    limit_s = COLD_FACTOR * min((start.total_s for start in starts), default=0.0)

    def kind(start: StartUp) -> Start | None:
        if start.kernel_cache == "empty":
            return "cold"
        if start.kernels_compiled is not None:
            return "cold" if start.kernels_compiled else "warm"
        if len(starts) == 1:  # it cannot be compared
            return None
        return "cold" if start.total_s > limit_s else "warm"

    return tuple(map(kind, starts))
