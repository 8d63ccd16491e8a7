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


def attribution(record: RunRecord) -> tuple[Attribution, ...]:
    """Shares of every rank over the marked iterations of the window.

    Raises ValueError if the window has none, or if a rank lacks a time that every rank measures.
    """
    marked = marked_iterations(record)
    all_reduce_s = [_times_s(rank, "all_reduce_time_s", marked) for rank in record.ranks]
    least_s = sum(map(min, zip(*all_reduce_s, strict=True))) if all(all_reduce_s) else None
    return tuple(_of_rank(rank, marked, least_s) for rank in record.ranks)


def _of_rank(rank: RankRecord, marked: Sequence[int], least_all_reduce_s: float | None) -> Attribution:
    def total(column: str) -> float | None:
        return sum(times_s) if (times_s := _times_s(rank, column, marked)) else None

    whole, learning, environment = map(total, ("iteration_time_s", "learning_time_s", "environment_step_time_s"))
    if whole is None or learning is None or environment is None:
        raise ValueError(f"rank {rank.rank} lacks times of marked iterations")
    iteration = whole

    def share(time_s: float | None) -> float | None:
        return None if time_s is None else time_s / iteration

    simulate, render, infer = map(total, ("simulate_time_s", "render_time_s", "inference_time_s"))
    all_reduce = None if least_all_reduce_s is None else total("all_reduce_time_s")
    return Attribution(
        rank=rank.rank,
        simulate=share(simulate),
        render=share(render),
        environment=(environment - (simulate or 0.0) - (render or 0.0)) / iteration,
        infer=share(infer),
        learn=(learning - (all_reduce or 0.0)) / iteration,
        all_reduce=share(least_all_reduce_s),
        waiting=share(None if all_reduce is None else all_reduce - (least_all_reduce_s or 0.0)),
        other=(iteration - learning - environment - (infer or 0.0)) / iteration,
    )


def _times_s(rank: RankRecord, column: str, iterations: Sequence[int]) -> list[float]:
    """Times of one column; [] if an iteration has no time."""
    stored = rank.samples.get(column, (None,) * rank.num_iterations)
    times_s = [time_s for iteration in iterations if (time_s := stored[iteration]) is not None]
    return times_s if len(times_s) == len(iterations) else []
