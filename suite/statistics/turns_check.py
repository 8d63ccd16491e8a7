"""Are rounds that are measured in turns as fast as rounds that run alone? Which cases are measured both ways. Pure.

A matrix with ``turns_check`` has every case twice: in turns, and as a copy under an id of its own whose rounds always
run alone. The rounds of both alternate.
"""

from collections.abc import Sequence
from dataclasses import replace

from suite.schema.record import ALONE_SUFFIX, Case


def is_alone(case: Case) -> bool:
    """Whether a case is the copy whose rounds run alone."""
    return case.case_id.endswith(ALONE_SUFFIX)


def with_copies(cases: Sequence[Case]) -> list[Case]:
    """Return ``cases`` in their order, each followed by its copy."""
    return [one for case in cases for one in (case, replace(case, case_id=case.case_id + ALONE_SUFFIX))]
