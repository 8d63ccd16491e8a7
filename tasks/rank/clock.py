"""How far the clocks of several nodes are apart, as NTP finds it, through the store that joined the ranks.

The first rank of each node asks rank 0 for its clocks, many times. Whatever the way there and back is like, rank 0 read
its clock between the question and the answer: the middle of the two is off by at most half of the round trip, and the
shortest round trip says most. Imports no torch.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

EXCHANGES: Final = 24  # with each node; the first waits until rank 0 has come to it

When = Literal["start", "end"]  # of the round


class Store(Protocol):
    """As much of torch's store as is needed; ``get`` waits until a key is there."""

    def set(self, key: str, value: str) -> object: ...

    def get(self, key: str) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """The clocks of a node minus those of rank 0's node, at the same moment [s]."""

    offset_s: float  # of the monotonic clock, which the ranks' samples are on
    bound_s: float  # the true offset is at most this far from it
    wall_offset_s: float  # of the wall clock, which errors are on


def read_clocks() -> tuple[float, float]:
    """The monotonic clock and the wall clock [s]."""
    return time.perf_counter(), time.time()


def measure(
    store: Store,
    when: When,
    *,
    rank: int,
    first_ranks: tuple[int, ...],
    clocks: Callable[[], tuple[float, float]] = read_clocks,
) -> ClockOffset | None:
    """To be called on the first rank of every node; rank 0, which the others are compared with, gets None."""
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
