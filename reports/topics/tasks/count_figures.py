"""What pages count: outcomes and evidence of the runs of a set, and what ran beside the runs of a series. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

from reports.display.topic import Figures
from reports.sets.concurrent_rounds import rounds_beside
from reports.sets.evidence import lacking
from reports.sets.version import ResultSet, Version
from reports.topics.tasks.overview import counts_of, series_of, tasks


def count_figures(version: Version) -> Mapping[str, Figures]:
    """Return set -> counts, set and series -> counts, and task and series -> counts over all sets."""
    found: dict[str, Figures] = {one.name: _of_set(one) for one in version.sets}
    for one in version.scaling:
        for name in one.campaign.series_names:
            found[f"{one.name}: {name}"] = _of_series(one, name)
    for task in tasks(version):
        for name, parts in series_of(version, task).items():
            found[f"{parts[0].rows[0].task}: {name}"] = counts_of(parts)
    return found


def _of_set(one: ResultSet) -> Figures:
    campaign = one.campaign
    of_cases = Counter(failure.outcome for row in campaign.rows for failure in row.failures)
    return {
        "series": len(campaign.series_names),
        "cases": sum(bool(row.rounds_completed) for row in campaign.rows),
        "completed": sum(row.rounds_completed for row in campaign.rows),
        "not_completed": dict(of_cases),
        "not_completed_of_repeats_and_tests": dict(Counter(each.outcome for each in campaign.failures) - of_cases),
        "runs_that_lack": dict(lacking(campaign.results)),
    }


def _of_series(one: ResultSet, name: str) -> Figures:
    series = one.campaign.series(name)
    slowed = series.slowed_cores
    return {
        "beside": asdict(rounds_beside(series.completed)),
        "slowed_cores": None
        if slowed is None
        else {"looks": slowed.looks, "slowed": slowed.slowed, "slower_by": slowed.slower_by, "cases": slowed.cases},
    }
