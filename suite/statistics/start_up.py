"""How long a process takes until it trains: cold and warm start as figures of their own. Pure.

A start is cold when kernels were compiled in its round. Records say how many since they count the files in the caches.
Of older ones, and of rounds beside others that share the caches, the time says it: compiled kernels are kept between
rounds, so a cold start takes more than ``COLD_FACTOR`` times as long as the shortest of its case. Of a single such
round nothing can be said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.reduce import iteration_times_s

# On H200s a later round of a case, which compiles nothing, took up to 1.56 times as long as the shortest, on a host
# that had become quicker since; a first round that is known to have compiled nothing 1.62 times. First rounds that
# compiled all took 2.0 to 8.1 times, those of which it is not known up to 1.69 (reports/results/2026.11).
COLD_FACTOR: Final = 1.75

Start = Literal["cold", "warm"]


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """One process from the first line of the worker to the end of its first iteration, slowest rank."""

    round: int
    total_s: float  # phases, first iteration, and what lies between: joining the ranks, the library's own preparation
    first_iteration_s: float
    phases_s: Mapping[str, float]
    kernels_compiled: int | None = None  # in the round, on the node with most; None: not known


def start_up(record: RunRecord) -> StartUp:
    """The start of a completed round. Raises ValueError as ``reduce.iteration_times_s`` does, or without one."""
    times_s = iteration_times_s(record)
    if not times_s:
        raise ValueError(f"round {record.round} has no iteration, so its start never ended")
    slowest = max(record.ranks, key=lambda rank: sum(rank.phases_s.values()))
    return StartUp(
        round=record.round,
        total_s=max(_total_s(rank, times_s[0]) for rank in record.ranks),
        first_iteration_s=times_s[0],
        phases_s=slowest.phases_s,
        kernels_compiled=_kernels_compiled(record),
    )


def _total_s(rank: RankRecord, first_iteration_s: float) -> float:
    """By the rank's own clock, which counts from the end of ``imports_torch``; without it, of the parts that are known.

    Parts of different ranks do not add up: who is ready first waits for the others in its first iteration.
    """
    start_s, time_s = (rank.samples.get(name, (None,))[0] for name in ("start_s", "iteration_time_s"))
    imports_s = rank.phases_s.get("imports_torch")
    if start_s is None or time_s is None or imports_s is None:
        return sum(rank.phases_s.values()) + first_iteration_s
    return imports_s + start_s + time_s


def _kernels_compiled(record: RunRecord) -> int | None:
    """None beside other rounds too: theirs go to the same caches."""
    counts = [rank.kernels_compiled for rank in record.ranks if rank.local_rank == 0]
    known = [count for count in counts if count is not None]
    return max(known) if record.neighbours == 0 and known and len(known) == len(counts) else None


def classify(starts: Sequence[StartUp]) -> tuple[Start | None, ...]:
    """Say of each start of one case on one host whether it was cold; None when nothing says it."""

    def by_time(start: StartUp) -> Start | None:
        if len(starts) < 2:  # noqa: PLR2004  (one cannot be compared)
            return None
        return "cold" if start.total_s > COLD_FACTOR * min(other.total_s for other in starts) else "warm"

    return tuple(
        by_time(start) if start.kernels_compiled is None else "cold" if start.kernels_compiled else "warm"
        for start in starts
    )
