"""Measures how far apart the clocks of several nodes are, as NTP does, through the store that joined the ranks.

The first rank of each node asks rank 0 for its clocks, many times. Rank 0 reads its clock between question and answer,
so the middle of the two is wrong by at most half of the round trip. The shortest round trip is the best measurement.
Imports no torch.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

EXCHANGES: Final = 24  # with each node; the first one waits until rank 0 gets to it

When = Literal["start", "end"]  # of the round


class Store(Protocol):
    """The part of torch's store that is used; ``get`` waits until the key exists."""

    def set(self, key: str, value: str) -> object: ...

    def get(self, key: str) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """Clocks of a node minus those of rank 0's node, at the same moment [s]."""

    offset_s: float  # of the monotonic clock, which times the ranks' samples
    bound_s: float  # the true offset differs from it by at most this
    wall_offset_s: float  # of the wall clock, which times errors


def read_clocks() -> tuple[float, float]:
    """Read the monotonic clock and the wall clock [s]."""
    return time.perf_counter(), time.time()


def measure(
    store: Store,
    when: When,
    *,
    rank: int,
    first_ranks: tuple[int, ...],
    clocks: Callable[[], tuple[float, float]] = read_clocks,
) -> ClockOffset | None:
    """Compare clocks; the first rank of every node calls this. Rank 0, the reference, gets None."""
    if rank != 0:
        return _ask(store, f"labscale/clock/{when}/{rank}", clocks)
    for other in first_ranks:
        if other != 0:
            _answer(store, f"labscale/clock/{when}/{other}", clocks)
    return None


def _answer(store: Store, prefix: str, clocks: Callable[[], tuple[float, float]]) -> None:
    for number in range(EXCHANGES):
        store.get(f"{prefix}/question-{number}")
        store.set(f"{prefix}/answer-{number}", json.dumps(clocks()))


def _ask(store: Store, prefix: str, clocks: Callable[[], tuple[float, float]]) -> ClockOffset:
    found = []
    for number in range(EXCHANGES):
        asked_s, wall_s = clocks()
        store.set(f"{prefix}/question-{number}", "")
        there_s, there_wall_s = json.loads(store.get(f"{prefix}/answer-{number}"))
        middle_s = (asked_s + clocks()[0]) / 2
        found.append(
            ClockOffset(
                offset_s=middle_s - there_s,
                bound_s=middle_s - asked_s,
                wall_offset_s=wall_s + (middle_s - asked_s) - there_wall_s,
            )
        )
    return min(found, key=lambda offset: offset.bound_s)
