"""How long a process takes until it trains: cold and warm start as figures of their own. Pure.

A start is cold when kernels were compiled during it. A record does not say so itself, but compiled kernels are kept
between rounds, so a cold start shows beside the other rounds of its case: it takes more than ``COLD_FACTOR`` times as
long as the shortest of them. Of a single round nothing can be said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.reduce import iteration_times_s
from suite.schema import RunRecord

COLD_FACTOR: Final = 1.5  # on H200s cold starts took 2.4 to 9.3 times as long as the shortest, warm ones up to 1.3

Start = Literal["cold", "warm"]


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """One process from the first line of the worker to the end of its first iteration, slowest rank."""

    round: int
    total_s: float  # phases and first iteration
    first_iteration_s: float
    phases_s: Mapping[str, float]


def start_up(record: RunRecord) -> StartUp:
    """The start of a completed round. Raises ValueError as ``suite.reduce.iteration_times_s`` does, or without one."""
    times_s = iteration_times_s(record)
    if not times_s:
        raise ValueError(f"round {record.round} has no iteration, so its start never ended")
    slowest = max(record.ranks, key=lambda rank: sum(rank.phases_s.values()))
    return StartUp(
        round=record.round,
        total_s=sum(slowest.phases_s.values()) + times_s[0],
        first_iteration_s=times_s[0],
        phases_s=slowest.phases_s,
    )


def classify(starts: Sequence[StartUp]) -> tuple[Start | None, ...]:
    """Say of each start of one case on one host whether it was cold; None when there is no other to compare with."""
    if len(starts) < 2:  # noqa: PLR2004  (one cannot be compared)
        return (None,) * len(starts)
    shortest_s = min(start.total_s for start in starts)
    return tuple("cold" if start.total_s > COLD_FACTOR * shortest_s else "warm" for start in starts)
