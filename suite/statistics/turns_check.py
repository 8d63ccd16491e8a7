"""Are rounds that are measured in turns as fast as rounds that run alone? Pure.

A matrix with ``turns_check`` has every case twice: in turns, and as a copy under an id of its own whose rounds always
run alone. The rounds of both alternate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from suite.schema.case_suffixes import ALONE_SUFFIX
from suite.schema.record import Case, CaseResult


@dataclass(frozen=True, kw_only=True)
class BothWays:
    """A case measured in turns, and its copy measured alone."""

    in_turns: CaseResult
    alone: CaseResult


def is_alone(case: Case) -> bool:
    """Whether a case is the copy whose rounds run alone."""
    return case.case_id.endswith(ALONE_SUFFIX)


def with_copies(cases: Sequence[Case]) -> list[Case]:
    """Return ``cases`` in their order, each followed by its copy."""
    return [one for case in cases for one in (case, replace(case, case_id=case.case_id + ALONE_SUFFIX))]


def measured_both_ways(results: Sequence[CaseResult]) -> tuple[BothWays, ...]:
    """The cases that have rounds of both kinds. Rounds that ran alone in spite of the plan do not count as in turns."""
    copies = {result.case.case_id: result for result in results if is_alone(result.case)}
    found = []
    for result in results:
        copy = copies.get(result.case.case_id + ALONE_SUFFIX)
        in_turns = replace(result, rounds=tuple(one for one in result.completed if one.turns is not None))
        if copy is not None and copy.completed and in_turns.rounds:
            found.append(BothWays(in_turns=in_turns, alone=copy))
    return tuple(found)
