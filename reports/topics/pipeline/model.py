"""What simulating and learning at the same time brings beside the same work in turn. Pure.

A run's figure is over its counted iterations, and a case's is the median over its runs. The samples of a pipeline are
those of the process that learns, which knows of every rollout when it was collected and with which weights.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reports.analysis.same_work import work_of
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate, median_of, ratio_of
from suite.statistics.reduce import counted_iterations, iteration_times_s, round_time_s


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One case of two processes; figures are None if no run completed."""

    result: CaseResult
    fps: Estimate | None  # frames collected a second, waiting included
    collecting_fps: Estimate | None  # frames a second while it collects
    updates_per_s: Estimate | None  # optimiser steps
    batches_between_syncs: float | None  # rollouts collected with the same weights, as learning takes them
    staleness: float | None  # updates between the weights of a rollout and those that learn from it
    overlapped: float | None  # share of the time in which one collects and the other one learns
    over_in_turn: Estimate | None  # frames a second over those of training in turn; None if nobody trained so

    @property
    def case(self) -> Case:
        return self.result.case


def pipelines(results: Sequence[CaseResult]) -> tuple[Pipeline, ...]:
    """Return every pipeline with its figures, in the order of ``results``."""
    return tuple(_pipeline(result, results) for result in results if result.case.is_pipeline)


def _pipeline(result: CaseResult, results: Sequence[CaseResult]) -> Pipeline:
    runs, frames = result.completed, result.case.frames_per_iteration
    times_s = [round_time_s(record) for record in runs]
    turn_s = [round_time_s(record) for one in results if _in_turn(one.case, result.case) for record in one.completed]
    collecting_s = [_mean(record, "pipeline.collected_time_s") for record in runs]
    time_s = median_of(times_s) if runs else None
    return Pipeline(
        result=result,
        fps=time_s and time_s.mapped(lambda value: frames / value),
        collecting_fps=median_of(collecting_s).mapped(lambda value: frames / value) if runs else None,
        updates_per_s=time_s and time_s.mapped(lambda value: result.case.optimiser_steps / value),
        batches_between_syncs=_median(runs, lambda record: _mean(record, "pipeline.batches_since_sync")),
        staleness=_median(runs, lambda record: _mean(record, "pipeline.staleness_updates")),
        overlapped=_median(runs, lambda record: share_of_time(record, "pipeline.overlapped_time_s")),
        over_in_turn=ratio_of(turn_s, times_s) if turn_s and times_s else None,
    )


def _in_turn(case: Case, pipeline: Case) -> bool:
    """Whether a case is the training with the same work, in one process."""
    return work_of(case) == work_of(replace(pipeline, workload="train", nproc_per_node=1))


def _median(runs: Sequence[RunRecord], value: Callable[[RunRecord], float]) -> float | None:
    return statistics.median(map(value, runs)) if runs else None


def _mean(record: RunRecord, column: str) -> float:
    return statistics.mean(_values(record, column))


def share_of_time(record: RunRecord, column: str) -> float:
    """Return the part of the time of a run's counted iterations that a column of seconds has."""
    times_s = iteration_times_s(record)
    whole_s = math.fsum(times_s[iteration] for iteration in counted_iterations(record))
    return math.fsum(_values(record, column)) / whole_s


def _values(record: RunRecord, column: str) -> list[float]:
    samples = record.ranks[0].samples[column]
    return [value for iteration in counted_iterations(record) if (value := samples[iteration]) is not None]
