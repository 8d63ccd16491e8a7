"""What *Turns* says besides figures.json: of cases that were measured both ways. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import ResultSet, Version
from reports.topics.trust.turns_check import Difference, TurnsCheck, judged, mean_ratio, pairs_of, pooled, turns_check


def turns_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case, set, case and GPU model, and ``all`` -> figures."""
    found = [(one, checked) for one in version.sets if (checked := turns_check(pairs_of(one)))]
    if not found:
        return {}
    said = {of: figures for one, checked in found for of, figures in _of_set(one, checked).items()}
    pairs = [pair for one in version.sets for pair in pairs_of(one)]
    for case in pooled(pairs):
        said[f"{case.case_id}, {case.gpu or 'CPUs'}"] = {
            "sets": case.sets,
            "in_turns_runs": case.in_turns_rounds,
            "alone_runs": case.alone_rounds,
            **with_interval("ratio", case.ratio),
        }
    counts = judged([case for _, checked in found for case in checked.cases])
    said["all"] = {
        "sets": len(found),
        "cases": counts.cases,
        "outside_noise": counts.outside,
        **with_interval("ratio", mean_ratio(pairs)),
    }
    return said


def _of_set(one: ResultSet, checked: TurnsCheck) -> Mapping[str, Figures]:
    counts = judged(checked.cases)
    return {
        **{f"{one.name}: {case.case_id}": _of_case(case) for case in checked.cases},
        one.name: {
            "cases": counts.cases,
            "outside_noise": counts.outside,
            **with_interval("ratio", checked.over_all),
            "in_turns_gpu_minutes": checked.in_turns_minutes,
            "alone_gpu_minutes": checked.alone_minutes,
            "cost_ratio": checked.cost,
            "least_cost_ratio": checked.least_cost,
        },
    }


def _of_case(case: Difference) -> Figures:
    return {
        **with_interval("in_turns_s", case.in_turns_s),
        **with_interval("alone_s", case.alone_s),
        "in_turns_runs": case.in_turns_rounds,
        "alone_runs": case.alone_rounds,
        **with_interval("ratio", case.ratio),
    }
