"""Attribute the iteration time of a rank to its parts. Pure.

The shares of a rank's own iteration time add up to 1. Times on a GPU are between events on its stream, so time in which
the GPU waits for its host belongs to the part in which it waits. An all-reduce ends on all ranks together, and the rank
that arrives last waits least. So the time that a rank spends in it beyond the shortest of that iteration is waiting.
This is a lower bound of waiting, because ranks may take turns at arriving last within one iteration.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.reduce import marked_iterations


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Shares of one rank's time, each from 0 to 1. A part that was not measured is None; its parent has its time."""

    rank: int
    simulate: float | None  # physics steps
    render: float | None  # pictures; None without cameras
    environment: float  # the rest of environment steps: observations, rewards, resets, a task's own networks
    infer: float | None  # the policy's choice of actions
    learn: float  # returns and optimiser steps, without all-reduce
    all_reduce: float | None  # the time of the rank that waited least; None for one rank
    waiting: float | None  # for other ranks, in all-reduce; None for one rank
    other: float  # the rest: the library's book-keeping, and gaps of the host between the parts


def attribution(record: RunRecord, iterations: Sequence[int] | None = None) -> tuple[Attribution, ...]:
    """Shares of every rank over ``iterations``, by default over all marked iterations of the window.

    Raises ValueError if a rank lacks one of these iterations or a time that every rank measures.
    """
    counted = marked_iterations(record) if iterations is None else iterations
    if not counted or any(rank.num_iterations <= max(counted) for rank in record.ranks):
        raise ValueError(f"round {record.round} has no samples of iterations {_listed(counted)}")
    reduced = [_column(rank, "all_reduce_time_s", counted) for rank in record.ranks]
    least = [min(times) for times in zip(*(times for times in reduced if times), strict=True)] if all(reduced) else None
    return tuple(_of_rank(rank, counted, sum(least) if least else None) for rank in record.ranks)


def _of_rank(rank: RankRecord, iterations: Sequence[int], least_all_reduce_s: float | None) -> Attribution:
    iteration = _required(rank, "iteration_time_s", iterations)
    learning = _required(rank, "learning_time_s", iterations)
    environment = _required(rank, "environment_step_time_s", iterations)
    simulate, render, infer = (
        _total(rank, column, iterations) for column in ("simulate_time_s", "render_time_s", "inference_time_s")
    )
    all_reduce = _total(rank, "all_reduce_time_s", iterations) if least_all_reduce_s is not None else None

    def share(time_s: float | None) -> float | None:
        return None if time_s is None else time_s / iteration

    return Attribution(
        rank=rank.rank,
        simulate=share(simulate),
        render=share(render),
        environment=(environment - (simulate or 0.0) - (render or 0.0)) / iteration,
        infer=share(infer),
        learn=(learning - (all_reduce or 0.0)) / iteration,
        all_reduce=share(least_all_reduce_s if all_reduce is not None else None),
        waiting=share(all_reduce - (least_all_reduce_s or 0.0) if all_reduce is not None else None),
        other=(iteration - learning - environment - (infer or 0.0)) / iteration,
    )


def _column(rank: RankRecord, column: str, iterations: Sequence[int]) -> Sequence[float] | None:
    """Times of one column [s]; None if an iteration has no time."""
    stored = rank.samples.get(column, ())
    values = [stored[iteration] for iteration in iterations if iteration < len(stored)]
    times = [value for value in values if value is not None]
    return times if len(times) == len(iterations) else None


def _total(rank: RankRecord, column: str, iterations: Sequence[int]) -> float | None:
    times = _column(rank, column, iterations)
    return None if times is None else sum(times)


def _required(rank: RankRecord, column: str, iterations: Sequence[int]) -> float:
    total = _total(rank, column, iterations)
    if total is None:
        raise ValueError(f"rank {rank.rank} has no {column} in iterations {_listed(iterations)}")
    return total


def _listed(iterations: Sequence[int]) -> str:
    return ", ".join(map(str, iterations)) or "of the window that are marked"
