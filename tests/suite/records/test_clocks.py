"""Clocks of nodes: the exchange between two whose clocks are known, and what follows of what it found."""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from suite.records.network.clocks import clock_of
from tasks.rank.machine import ClockOffset, clock_offset
from tests.fixtures.results.rank_events import Events, RankFiles, end, error, head, iterations


@dataclass
class SlowStore:
    """Keys of two threads; what is asked for comes only after ``delay_s``."""

    delay_s: float
    keys: dict[str, queue.SimpleQueue[bytes]] = field(default_factory=lambda: defaultdict(queue.SimpleQueue))

    def set(self, key: str, value: str) -> None:
        self.keys[key].put(value.encode())

    def get(self, key: str) -> bytes:
        value = self.keys[key].get(timeout=10)
        time.sleep(self.delay_s)
        return value


def exchanged(store: SlowStore, *, ahead_s: float, wall_ahead_s: float) -> ClockOffset:
    """What the second node finds, whose clocks are ahead by so much."""
    found: list[ClockOffset | None] = []

    def clocks() -> tuple[float, float]:
        return time.perf_counter() + ahead_s, time.time() + wall_ahead_s

    def second() -> None:
        found.append(clock_offset(store, "start", rank=4, first_ranks=(0, 4), clocks=clocks))

    thread = threading.Thread(target=second)
    thread.start()
    assert clock_offset(store, "start", rank=0, first_ranks=(0, 4)) is None
    thread.join(10)
    (offset,) = found
    assert offset is not None
    return offset


def test_the_true_offset_lies_within_the_bound() -> None:
    offset = exchanged(SlowStore(0.0005), ahead_s=-70_000.0, wall_ahead_s=2.5)
    assert abs(offset.offset_s + 70_000.0) <= offset.bound_s
    assert offset.wall_offset_s == pytest.approx(2.5, abs=offset.bound_s + 0.001)
    assert offset.bound_s >= 0.0005  # half of two delays, and whatever a busy machine adds at best


def of_node(rank: int, node: int, *, zero_s: float, offsets: Sequence[dict[str, Any]] = ()) -> Events:
    """A rank of another node, whose clock reads ``zero_s`` where its samples count from."""
    first, *others = head(rank)
    events = iterations(3)
    for row, event in enumerate(events):
        event["samples"]["start_s"] = 0.5 * row
    clock = {"event": "clock", "zero_monotonic_s": zero_s}
    return [{**first, "local_rank": 0, "node": node}, *offsets, *others, clock, *events]


def offset(when: str, offset_s: float, bound_s: float = 0.001, wall_offset_s: float = 0.0) -> dict[str, Any]:
    event = {"event": "clock_offset", "when": when, "offset_s": offset_s, "bound_s": bound_s}
    return {**event, "wall_offset_s": wall_offset_s}


@pytest.fixture
def two_nodes(rank_files: RankFiles) -> RankFiles:
    rank_files.case = replace(rank_files.case, nnodes=2, nproc_per_node=1)
    return rank_files


def test_offsets_of_start_and_end_become_the_clock_of_a_node(two_nodes: RankFiles) -> None:
    two_nodes.rank(0, of_node(0, 1, zero_s=100.0) + end())
    measured = [offset("start", 50.0, 0.001), offset("end", 50.01, 0.002)]
    two_nodes.rank(1, of_node(1, 0, zero_s=150.005, offsets=measured) + end())
    record = two_nodes.collect()
    assert (record.outcome, record.reason) == ("completed", None)
    assert [rank.node for rank in record.ranks] == [1, 0]
    assert record.clocks is not None
    (clock,) = record.clocks
    assert (clock.node, clock.offset_s, clock.wall_offset_s) == (0, 50.005, 0.0)
    assert clock.drift_s == pytest.approx(0.01)
    assert clock.bound_s == pytest.approx(0.002 + 0.01 / 2)
    assert clock_of(0, record.clocks, reference=1, needed_s=0.1) == clock
    assert clock_of(1, record.clocks, reference=1, needed_s=0.1).offset_s == 0.0
    with pytest.raises(ValueError, match=r"node 0 is known to 0\.007 s only, and 0\.001 s are needed"):
        clock_of(0, record.clocks, reference=1, needed_s=0.001)
    with pytest.raises(ValueError, match="node 2 was not compared"):
        clock_of(2, record.clocks, reference=1, needed_s=0.1)


@pytest.mark.parametrize(("offset_s", "outcome"), [(50.0, "completed"), (52.0, "invalid")])
def test_iterations_of_one_number_must_share_a_window(two_nodes: RankFiles, offset_s: float, outcome: str) -> None:
    """The same two files: whether they fit is known by the offset alone."""
    two_nodes.rank(0, of_node(0, 0, zero_s=100.0) + end())
    measured = [offset("start", offset_s), offset("end", offset_s)]
    two_nodes.rank(1, of_node(1, 1, zero_s=150.0, offsets=measured) + end())
    record = two_nodes.collect()
    assert record.outcome == outcome
    if outcome == "invalid":
        assert record.reason == "rank 1 ended iteration 0 1.5 s before rank 0 began it: their samples share no window"


def test_the_first_failure_is_found_though_a_wall_clock_is_wrong(two_nodes: RankFiles) -> None:
    """Node 1 is an hour ahead: its error, first in truth, has the later stamp."""
    two_nodes.rank(0, of_node(0, 0, zero_s=100.0) + error("second", time_unix_s=20.0))
    ahead = [offset("start", 50.0, wall_offset_s=3600.0)]
    two_nodes.rank(1, of_node(1, 1, zero_s=150.0, offsets=ahead) + error("first", time_unix_s=3610.0))
    assert two_nodes.collect(exit_code=1).reason == "rank 1: RuntimeError: first"
