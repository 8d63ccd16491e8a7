"""Whose a set is, where it is not the project's own."""

import html

from reports.display.html import Html, link
from reports.sets.manifest import Contributor


def byline(contributor: Contributor | None) -> Html:
    """Name, link and citation; nothing for the project's own."""
    if contributor is None:
        return Html(markup="", text="")
    name = contributor.name
    shown = Html(markup=html.escape(name), text=name) if contributor.link is None else link(name, contributor.link)
    rest = "; checked here, not repeated." + (f" To cite: {contributor.citation}" if contributor.citation else "")
    return Html(
        markup=f"<p>Measured and contributed by {shown.markup}{html.escape(rest)}</p>",
        text=f"Measured and contributed by {name}{rest}",
    )
