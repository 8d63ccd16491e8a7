"""Speed-up from mean times over one window of a series, by the model of all of its runs. Pure."""

from collections.abc import Iterable

from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import SeriesModel, run_time, window_of


def fixed_window_speedup(base: CaseResult, other: CaseResult, of_set: Iterable[CaseResult]) -> Estimate | None:
    """Return throughput of ``other`` over that of ``base``; None for too few runs, and of ``base`` itself.

    ``of_set``: all results of their set, repeats of the baseline included.
    """
    if other is base:
        return None
    case = base.case
    records = [
        record
        for result in of_set
        if (result.case.series, result.case.rl_library, result.case.workload)
        == (case.series, case.rl_library, case.workload)
        for record in result.completed
    ]
    window = window_of(records)
    if not window:
        return None
    ratio = SeriesModel([run_time(record, window) for record in records]).ratio(case.case_id, other.case.case_id)
    work = other.case.frames_per_iteration / case.frames_per_iteration
    return None if ratio.interval is None else ratio.mapped(lambda times: work * times)
