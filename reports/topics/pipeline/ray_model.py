"""What it costs to collect rollouts in a process of Ray beside collecting them in the same process. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.analysis.same_work import work_of
from reports.topics.pipeline.model import share_of_time
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, median_of, ratio_of
from suite.statistics.stopping_rule import completed_times_s

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
    here_s = [time_s for one in results if work_of(one.case) == alike for time_s in completed_times_s(one.completed)]
    return OverRay(
        result=result,
        fps=_fps(result.case, times_s),
        here_fps=_fps(result.case, here_s),
        over_here=ratio_of(here_s, times_s) if here_s and times_s else None,
        collecting=statistics.median(share_of_time(record, COLLECTED) for record in result.completed)
        if times_s
        else None,
    )


def _fps(case: Case, times_s: Sequence[float]) -> Estimate | None:
    return median_of(times_s).mapped(lambda time_s: case.frames_per_iteration / time_s) if times_s else None
