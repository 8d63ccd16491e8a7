"""Collecting in a process of Ray: the answer, and a table of every set."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.analysis.curves import task_name
from reports.analysis.same_work import work_of
from reports.display.html import Html, answer_of_page, count, estimated, html_table, percent, together
from reports.display.per_set import failures_in_words, under_titles
from reports.sets.version import ResultSet, Version
from reports.topics.pipeline.page import share_of_time
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import completed_times_s
from suite.statistics.series_model import SetModel

COLLECTED: Final = "control.collected_time_s"  # column with what the other process took


@dataclass(frozen=True, kw_only=True)
class OverRay:
    """One case that collects over Ray; figures are None if no run completed, of both where both are compared."""

    result: CaseResult
    fps: Estimate | None  # frames a second until they are back in the process that asked
    here_fps: Estimate | None  # of the same collector in the process that asked
    over_here: Estimate | None  # the first over the second
    collecting: float | None  # share of the time in which the other process collects; the rest is the way back

    @property
    def case(self) -> Case:
        return self.result.case


def over_ray(results: Sequence[CaseResult]) -> tuple[OverRay, ...]:
    """Return every case that collects over Ray, in the order of ``results``."""
    return tuple(_of(result, results) for result in results if result.case.workload == "collection_ray")


def _of(result: CaseResult, results: Sequence[CaseResult]) -> OverRay:
    times_s = completed_times_s(result.completed)
    alike = work_of(replace(result.case, workload="collection"))
    here = next((one for one in results if one.completed and work_of(one.case) == alike), None)
    return OverRay(
        result=result,
        fps=_fps(result.case, times_s),
        here_fps=None if here is None else _fps(here.case, completed_times_s(here.completed)),
        over_here=None if here is None else SetModel.of(results).ratio(here.case, result.case),
        collecting=statistics.median(share_of_time(record, COLLECTED) for record in result.completed)
        if times_s
        else None,
    )


def _fps(case: Case, times_s: Sequence[float]) -> Estimate | None:
    return mean_of(times_s).mapped(lambda time_s: case.frames_per_iteration / time_s) if times_s else None


HEADINGS: Final = ("Case", "Frames/s over Ray", "Frames/s here", "Times", "Collecting", "Runs")


def has_ray(version: Version) -> bool:
    return any(over_ray(one.campaign.results) for one in version.scaling)


def answer(version: Version) -> Html:
    """Say how many times the frames of the collector in the same process the one over Ray makes.

    Each task is spoken for by its case with the most runs over Ray; of equal ones, by the first.
    """
    compared = [each for one in version.scaling for each in over_ray(one.campaign.results) if each.over_here]
    if not compared:
        return answer_of_page("No collector completed both over Ray and in the same process.")
    tasks = dict.fromkeys(each.case.task for each in compared)
    found = [max((each for each in compared if each.case.task == task), key=_runs) for task in tasks]
    said = ", and ".join(f"{estimated(each.over_here, _times)} times the frames ({_measured(each)})" for each in found)
    return answer_of_page(f"Over Ray TorchRL's collector makes {said} of the one in the same process.")


def _measured(each: OverRay) -> str:
    """The task, and whether the runs are too few for an interval."""
    few = ", too few runs" if each.over_here and each.over_here.interval is None else ""
    return task_name(each.case.task) + few


def _runs(each: OverRay) -> int:
    return len(each.result.completed)


def sets(version: Version) -> Html:
    """A table for every set in which a collector ran over Ray."""
    asked = [one for one in version.scaling if over_ray(one.campaign.results)]
    return under_titles(asked, _shown, are_named=version.must_name_sets)


def _shown(one: ResultSet) -> Html:
    found = over_ray(one.campaign.results)
    table = html_table(HEADINGS, map(_row, found), label=f"Collecting over Ray {one.title}".strip())
    return together([table, *failures_in_words(each.result for each in found)])


def _row(each: OverRay) -> list[str]:
    return [
        each.case.case_id,
        estimated(each.fps, count),
        estimated(each.here_fps, count),
        estimated(each.over_here, _times),
        percent(each.collecting),
        str(_runs(each)),
    ]


def _times(value: float) -> str:
    """Two digits after the point, and at least two that count: ``1.44``, ``0.013``."""
    return f"{value:#.2g}" if value < 0.1 else f"{value:.2f}"  # noqa: PLR2004 - from here on two digits count
