"""What every set has to show, one below the other, and which of its runs failed."""

from collections.abc import Callable, Iterable, Sequence

from reports.analysis.rows import failures_of
from reports.display.html import Displayed, Html, bullets, heading, together
from reports.sets.version import ResultSet
from suite.schema.record import CaseResult


def under_titles(
    sets: Sequence[ResultSet], show: Callable[[ResultSet], Displayed], *, are_named: bool, depth: int = 3
) -> Html:
    """``are_named``: a page that shows the figures of one set only does not say whose they are."""
    parts: list[Displayed] = []
    for one in sets:
        if are_named:
            parts.append(heading(one.title, depth=depth))
        parts.append(show(one))
    return together(parts)


def failures_in_words(results: Iterable[CaseResult]) -> list[Displayed]:
    """Return a list of the runs that did not complete, with the reason of each; nothing where all did."""
    failures = [failure for result in results for failure in failures_of(result)]
    lines = [f"{each.case_id}, run {each.round}: {each.outcome}. {each.reason}" for each in failures]
    return [bullets(lines)] if lines else []
