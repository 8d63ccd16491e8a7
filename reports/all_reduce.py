"""What all-reduce took, and what a ring of ranks has to do for one. Pure."""

import statistics

from reports.resampling import Rounds
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.reduce import steady_part


def ring_basis(world_size: int, message_bytes: float) -> tuple[float, float]:
    """Steps of a ring, each of one latency, and the bytes that pass its slowest link."""
    steps = 2 * (world_size - 1)
    return steps, steps / world_size * message_bytes


def all_reduce_times_s(result: CaseResult) -> Rounds:
    """Seconds in all-reduce per steady iteration of every completed round that measured it.

    Of the rank that spent least in it: the others waited for that one, and waiting is no communication.
    """
    times = {record.round: _least_all_reduce_s(record) for record in result.completed}
    return {number: time_s for number, time_s in times.items() if time_s is not None}


def _least_all_reduce_s(record: RunRecord) -> float | None:
    steady = steady_part(record)
    columns = [steady.of(rank.samples.get("all_reduce_time_s", ())) for rank in record.ranks]
    per_iteration = [
        min(time_s for time_s in times if time_s is not None)
        for times in zip(*columns, strict=False)
        if None not in times
    ]
    return statistics.median(per_iteration) if per_iteration else None
