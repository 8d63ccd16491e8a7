"""Relates the clocks of a round's nodes, and gives times on the clock of rank 0's node. Pure.

All processes of a node share its monotonic clock, so times of ranks on one node compare directly.
"""

import math
from collections.abc import Sequence
from typing import Final

from suite.records.rank_file import RankFile
from suite.schema.record import Case, NodeClock

NEEDED_S: Final = 0.1  # half the time between two telemetry samples; a coarser clock would shift whole samples
_DIGITS: Final = 9  # nanoseconds


def node_clocks(case: Case, files: Sequence[RankFile]) -> tuple[NodeClock, ...] | None:
    """Offset of each node's clock from that of rank 0's node; None for one node, which has one clock."""
    if case.nnodes == 1:
        return None
    return tuple(sorted((clock for file in files if (clock := _clock(file))), key=lambda clock: clock.node))


def _clock(file: RankFile) -> NodeClock | None:
    found = {event.when: event for event in file.clock_offsets}
    start, end = found.get("start"), found.get("end")
    if start is None or file.start is None or file.start.node is None:
        return None
    drift_s = None if end is None else end.offset_s - start.offset_s
    return NodeClock(
        node=file.start.node,
        offset_s=round(start.offset_s + (drift_s or 0.0) / 2, _DIGITS),
        bound_s=round(max(start.bound_s, end.bound_s if end else 0.0) + abs(drift_s or 0.0) / 2, _DIGITS),
        drift_s=None if drift_s is None else round(drift_s, _DIGITS),
        wall_offset_s=round(start.wall_offset_s, _DIGITS),
    )


def clock_of(node: int, clocks: Sequence[NodeClock] | None, *, reference: int, needed_s: float) -> NodeClock:
    """Return the clock of a node, known to ``needed_s`` or better; ``reference`` is rank 0's node.

    Raises ValueError if it was not measured, or not precisely enough.
    """
    if node == reference:
        return NodeClock(node=node, offset_s=0.0, bound_s=0.0, drift_s=0.0, wall_offset_s=0.0)
    clock = next((clock for clock in clocks or () if clock.node == node), None)
    if clock is None or clock.drift_s is None:
        when = "" if clock is None else " at the end"
        raise ValueError(f"the clock of node {node} was not compared with that of rank 0's node{when}")
    if clock.bound_s > needed_s:
        raise ValueError(
            f"the clock of node {node} is known to {clock.bound_s:.3g} s only, and {needed_s:g} s are needed"
        )
    return clock


def failed_at_s(file: RankFile, files: Sequence[RankFile]) -> float | None:
    """When a rank failed, by the wall clock of rank 0's node if its offset is known: hosts' wall clocks may differ."""
    if file.error is None or file.error.time_unix_s is None:
        return None
    node = file.start.node if file.start else None
    offsets = (
        other.clock_offsets[0].wall_offset_s
        for other in files
        if other.clock_offsets and other.start and other.start.node == node
    )
    return file.error.time_unix_s - next(offsets, 0.0)


def apart(case: Case, files: Sequence[RankFile], clocks: Sequence[NodeClock] | None) -> str | None:
    """Where ranks ran the same iteration at different times, though they wait for each other; None if nowhere.

    An iteration with an all-reduce cannot end on one rank before it has begun on all. Trainings that share a GPU wait
    for each other between turns only.
    """
    reduces = case.learns or case.workload == "all_reduce"
    if not reduces or case.trainings_per_gpu > 1:
        return None
    try:
        zeros_s = [_zero_s(file, clocks, reference=_node(files[0])) for file in files]
    except (IndexError, ValueError):  # there is no common clock
        return None
    slack_s = NEEDED_S + 2 * max((clock.bound_s for clock in clocks or ()), default=0.0)
    for row in range(min(len(file.iterations) for file in files)):
        begun, ended = [], []
        for file, zero_s in zip(files, zeros_s, strict=True):
            samples = file.iterations[row].samples
            start_s, time_s = samples.get("start_s"), samples.get("iteration_time_s")
            if start_s is None or time_s is None:
                return None
            begun.append((zero_s + start_s, file.rank))
            ended.append((zero_s + start_s + time_s, file.rank))
        (last_s, late), (first_s, early) = max(begun), min(ended)
        if last_s - first_s > slack_s:
            return (
                f"rank {early} ended iteration {row} {last_s - first_s:.3g} s before rank {late} began it: "
                "their samples share no window"
            )
    return None


def _node(file: RankFile) -> int:
    return file.start.node if file.start and file.start.node is not None else 0


def _zero_s(file: RankFile, clocks: Sequence[NodeClock] | None, *, reference: int) -> float:
    """Zero of the rank's ``start_s``, on the monotonic clock of rank 0's node."""
    if file.clock is None:
        raise ValueError(f"rank {file.rank} did not write what its clock counts from")
    clock = clock_of(_node(file), clocks, reference=reference, needed_s=math.inf)
    return file.clock.zero_monotonic_s - clock.offset_s
