"""Whose a set is, where it is not the project's own."""

import html

from reports.display.html import Html, heading, html_table, link, together
from reports.sets.manifest import Contributor
from reports.sets.version import Version


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


def listing(version: Version) -> Html:
    """Every set that is not the project's own; nothing where there is none."""
    found = [(one.title, one.contributor) for one in version.sets if one.contributor is not None]
    if not found:
        return Html(markup="", text="")
    rows = (
        [
            title,
            contributor.name,
            link(contributor.link, contributor.link) if contributor.link else "",
            contributor.citation or "",
        ]
        for title, contributor in found
    )
    table = html_table(["Set", "Contributed by", "Link", "To cite"], rows, label="Contributed sets", num_text_columns=4)
    return together([heading("Contributed sets", depth=3), table])
