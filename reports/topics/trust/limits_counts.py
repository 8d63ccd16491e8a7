"""What *Limits* counts: cases without an interval, runs that did not settle, what runs lack, what never ran. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.analysis.curves import is_emulated
from reports.sets.version import Version
from suite.schema.record import Case


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Counts over all sets of a version; runs are completed ones of cases, without repeats and copies."""

    cases: int  # with a completed run
    cases_by_runs: Mapping[int, int]  # number of completed runs, fewest first -> cases
    with_interval: int  # cases
    without_interval: int
    runs: int
    unsettled: int
    with_fingerprint: int
    with_telemetry: int
    with_checks: int  # of env_check
    with_official_assets: int
    on_several_nodes: int
    emulated: int  # of these
    failed: int  # runs that did not complete, of repeats too


def limits(version: Version) -> Limits:
    rows = [row for one in version.sets for row in one.campaign.rows if row.rounds_completed]
    records = [record for one in version.sets for record in one.campaign.completed]
    with_interval = sum(row.iteration_time_interval_s is not None for row in rows)
    return Limits(
        cases=version.totals.cases,
        cases_by_runs=dict(sorted(Counter(row.rounds_completed for row in rows).items())),
        with_interval=with_interval,
        without_interval=len(rows) - with_interval,
        runs=version.totals.runs,
        unsettled=version.totals.unsettled,
        with_fingerprint=sum(bool(record.workload) for record in records),
        with_telemetry=sum(record.telemetry is not None for record in records),
        with_checks=sum(bool(record.environment.checks) for record in records),
        with_official_assets=sum(record.case.assets == "official" for record in records),
        on_several_nodes=sum(record.case.nnodes > 1 for record in records),
        emulated=sum(record.transport is not None and bool(record.transport.emulated) for record in records),
        failed=sum(len(one.campaign.failures) for one in version.sets),
    )


@dataclass(frozen=True, kw_only=True)
class OfMatrix:
    """How many cases of a matrix completed in a version; on emulated nodes ``emulated`` of them never did otherwise."""

    cases: int
    completed: int
    emulated: int
    missing: Mapping[str, Sequence[Case]]  # series -> those that never completed


def of_matrix(version: Version, planned: Sequence[Case]) -> OfMatrix:
    results = [result for one in version.sets for result in one.campaign.results if result.completed]
    measured = {result.case.case_id for result in results}
    on_nodes = {result.case.case_id for result in results if not is_emulated(result)}
    missing: dict[str, list[Case]] = {}
    for case in (case for case in planned if case.case_id not in measured):
        missing.setdefault(case.series, []).append(case)
    return OfMatrix(
        cases=len(planned),
        completed=len(planned) - sum(map(len, missing.values())),
        emulated=sum(case.case_id in measured - on_nodes for case in planned),
        missing=missing,
    )
