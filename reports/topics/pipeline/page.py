"""Simulation and learning at the same time: the answer, and a table of every set."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reports.analysis.curves import task_name
from reports.analysis.same_work import work_of
from reports.display.html import Html, answer_of_page, count, estimated, html_table, percent, ratio, together
from reports.display.per_set import failures_in_words, under_titles
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import counted_iterations, iteration_times_s, round_time_s
from suite.statistics.series_model import SetModel


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
    in_turn = next((one.case for one in results if one.completed and _in_turn(one.case, result.case)), None)
    collecting_s = [_mean(record, "pipeline.collected_time_s") for record in runs]
    time_s = mean_of(times_s) if runs else None
    return Pipeline(
        result=result,
        fps=time_s and time_s.mapped(lambda value: frames / value),
        collecting_fps=mean_of(collecting_s).mapped(lambda value: frames / value) if runs else None,
        updates_per_s=time_s and time_s.mapped(lambda value: result.case.optimiser_steps / value),
        batches_between_syncs=_median(runs, lambda record: _mean(record, "pipeline.batches_since_sync")),
        staleness=_median(runs, lambda record: _mean(record, "pipeline.staleness_updates")),
        overlapped=_median(runs, lambda record: share_of_time(record, "pipeline.overlapped_time_s")),
        over_in_turn=None if in_turn is None else SetModel.of(results).ratio(in_turn, result.case),
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


HEADINGS = (
    "Case",
    "Frames/s",
    "Times in turn",
    "Frames/s while collecting",
    "Optimiser steps/s",
    "Rollouts a sync",
    "Staleness",
    "Overlapped",
    "Runs",
)


def has_pipelines(version: Version) -> bool:
    return any(_of(one) for one in version.scaling)


def answer(version: Version) -> Html:
    """Say how many times the frames of the same work in turn each pipeline processes."""
    found = [each for one in version.scaling for each in _of(one) if each.over_in_turn]
    if not found:
        return answer_of_page("No pipeline completed beside the same training in turn.")
    said = ", and ".join(
        f"{estimated(each.over_in_turn)} times the frames of the same work in turn ({_name(each)})" for each in found
    )
    return answer_of_page(f"Simulating and learning at the same time processes {said}.")


def sets(version: Version) -> Html:
    """A table for every set that has pipelines."""
    return under_titles([one for one in version.scaling if _of(one)], _shown, are_named=version.must_name_sets)


def _of(one: ResultSet) -> tuple[Pipeline, ...]:
    return pipelines(one.campaign.results)


def _shown(one: ResultSet) -> Html:
    found = _of(one)
    label = f"Simulation and learning at the same time{f', {one.title}' if one.title else ''}"
    table = html_table(HEADINGS, map(_row, found), label=label)
    return together([table, *failures_in_words(each.result for each in found)])


def _name(each: Pipeline) -> str:
    return f"{task_name(each.case.task)} on {counted(each.case.world_size, 'GPU')}"


def _row(each: Pipeline) -> list[str]:
    return [
        each.case.case_id,
        estimated(each.fps, count),
        estimated(each.over_in_turn),
        estimated(each.collecting_fps, count),
        estimated(each.updates_per_s),
        ratio(each.batches_between_syncs),
        ratio(each.staleness),
        percent(each.overlapped),
        str(len(each.result.completed)),
    ]
