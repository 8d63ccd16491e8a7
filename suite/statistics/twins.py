"""Copies of cases under ids of their own, with rounds of their own: repeats of baselines, and cases measured alone.

A repeat measurement (A/A pair) is the baseline case of a series, measured twice and interleaved. In
``suite.statistics.series_model`` both are one configuration. How often an interval of their ratio contains 1 is a check
of the intervals.

A matrix with ``turns_check`` has every case twice: in turns, and as a copy whose rounds always run alone. The rounds of
both alternate. Are rounds that are measured in turns as fast?
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from suite.schema.record import ALONE_SUFFIX, Case

SUFFIX: Final = "-aa"


def is_twin(case: Case) -> bool:
    return case.case_id.endswith(SUFFIX)


def is_alone(case: Case) -> bool:
    """Whether a case is the copy whose rounds run alone."""
    return case.case_id.endswith(ALONE_SUFFIX)


def with_copies(cases: Sequence[Case]) -> list[Case]:
    """Return ``cases`` in their order, each followed by the copy whose rounds run alone."""
    return [copy for case in cases for copy in (case, _copy(case, ALONE_SUFFIX))]


def with_twins(cases: Sequence[Case]) -> list[Case]:
    """Return ``cases`` in their order, each series' baseline followed by its twin.

    The baseline is the first case of a series on the fewest ranks. Single-part tests have no twin: they explain
    figures and are not compared between machines.
    """
    baselines: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: case.world_size):
        if case.workload == "train":
            baselines.setdefault(case.series, case)
    return [copy for case in cases for copy in ((case, _copy(case, SUFFIX)) if case in baselines.values() else (case,))]


def _copy(case: Case, suffix: str) -> Case:
    return replace(case, case_id=case.case_id + suffix)


def ratios_of(case: Case, cases: Iterable[Case]) -> list[tuple[Case, Case]]:
    """The ratios that ``case`` has part in, each as a case and its baseline; a twin has part in those of its baseline.

    The baseline is the first case on the fewest ranks of those that differ in their work or ranks alone.
    """
    alike = [other for other in cases if not is_twin(other) and _kind(other) == _kind(case)]
    if not alike:
        return []
    baseline = min(alike, key=lambda other: other.world_size)
    ratios = [(other, baseline) for other in alike if other is not baseline]
    is_baseline = case.case_id.removesuffix(SUFFIX) == baseline.case_id
    return ratios if is_baseline else [(other, base) for other, base in ratios if other.case_id == case.case_id]


def _kind(case: Case) -> tuple[str, ...]:
    return case.series, case.workload, case.rl_library, case.minibatch_rule
