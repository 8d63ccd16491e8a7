"""Pairs of cases of one campaign that differ in a fact, such as the version of a package, for a comparison. Pure.

The first of a pair is the case with the worker's own pins, else the first one of those that differ in nothing else.
"""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.topics.history.likeness import differences
from suite.errors import UsageError
from suite.schema.record import Case, CaseResult

type Pair = tuple[CaseResult, CaseResult]


def pairs_across(results: Sequence[CaseResult], across: Sequence[str]) -> tuple[Pair, ...]:
    """Return the cases that differ in the facts ``across`` (names or patterns), each beside the first of its kind.

    Both have the id of the second and one and the same case; their records stay as they are.

    Raises:
        UsageError: no two cases differ in them.
    """
    groups: dict[Case, list[CaseResult]] = {}
    for result in results:
        groups.setdefault(_without_versions(result.case), []).append(result)
    found = tuple(pair for group in groups.values() for pair in _pairs_of(group, across))
    if not found:
        raise UsageError(
            f"No two of these {len(results)} cases differ in {', '.join(across)} and have the same work. Name a folder "
            "of a campaign with several versions, such as of the matrix releases, or two folders."
        )
    return found


def _without_versions(case: Case) -> Case:
    return replace(case, case_id="", division="closed", with_packages=())


def _pairs_of(group: Sequence[CaseResult], across: Sequence[str]) -> Iterator[Pair]:
    first, *others = sorted(group, key=lambda result: bool(result.case.with_packages))
    for other in others:
        case = replace(first.case, case_id=other.case.case_id)
        pair = replace(first, case=case), replace(other, case=case)
        known = {item.name for item in differences(*pair)}
        asked = {f"versions.{package.partition('==')[0]}" for package in other.case.with_packages}
        if any(fnmatch.fnmatchcase(name, pattern) for name in known | asked for pattern in across):
            yield pair
