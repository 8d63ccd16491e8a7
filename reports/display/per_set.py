"""What every set has to show, one below the other."""

from collections.abc import Callable, Sequence

from reports.display.html import Displayed, Html, heading, together
from reports.sets.version import ResultSet


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
