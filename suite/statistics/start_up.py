"""Measure how long a process takes until it trains, and tell cold starts from warm ones. Pure.

A start is cold if its round compiled kernels, and always if its case gives each round an empty kernel cache. Records
have the number of kernels, from the files in the caches. Old records lack it, and rounds that ran beside others share
the caches; there the time decides. Compiled kernels are kept between rounds, so a cold start takes more than
``COLD_FACTOR`` times as long as the shortest start of its case. A single such round is undecided.
"""

from collections.abc import Mapping, Sequence
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

    round: int
    total_s: float  # phases, first iteration, and the time between: joining the ranks, the library's preparation
    first_iteration_s: float
    phases_s: Mapping[str, float]
    kernels_compiled: int | None = None  # in the round, on the node with most; None: unknown
    warp_compile_time_s: float | None = None  # of the rank whose modules took longest; None: unknown
    kernel_cache: KernelCache = "kept"


def start_up(record: RunRecord) -> StartUp:
    """The start of a completed round. Raises ValueError as ``iteration_times_s`` does, and without an iteration."""
    times_s = iteration_times_s(record)
    if not times_s:
        raise ValueError(f"round {record.round} has no iteration, so its start never ended")
    slowest = max(record.ranks, key=lambda rank: sum(rank.phases_s.values()))
    times_known_s = [rank.warp_compile_time_s for rank in record.ranks if rank.warp_compile_time_s is not None]
    return StartUp(
        round=record.round,
        total_s=max(_total_s(rank, times_s[0]) for rank in record.ranks),
        first_iteration_s=times_s[0],
        phases_s=slowest.phases_s,
        kernels_compiled=_kernels_compiled(record),
        warp_compile_time_s=max(times_known_s) if len(times_known_s) == len(record.ranks) else None,
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
    counts = [rank.kernels_compiled for rank in record.ranks if rank.local_rank == 0]
    known = [count for count in counts if count is not None]
    is_own = record.case.kernel_cache == "empty" or record.turns is None
    return max(known) if is_own and known and len(known) == len(counts) else None


def classify(starts: Sequence[StartUp]) -> tuple[Start | None, ...]:
    """Tell for each start of one case on one host whether it was cold or warm; None if undecided."""

    def by_time(start: StartUp) -> Start | None:
        if len(starts) < 2:  # noqa: PLR2004  (one cannot be compared)
            return None
        return "cold" if start.total_s > COLD_FACTOR * min(other.total_s for other in starts) else "warm"

    def kind(start: StartUp) -> Start | None:
        if start.kernel_cache == "empty":
            return "cold"
        return by_time(start) if start.kernels_compiled is None else "cold" if start.kernels_compiled else "warm"

    return tuple(map(kind, starts))
