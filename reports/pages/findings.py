"""Findings: a claim, its figures from the table of figures, how sure it is, and what to do because of it. Pure."""

import html
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from itertools import groupby
from typing import Any, Final

from reports.data.words import configuration_name
from reports.display.html import Html, heading, measured, together
from reports.figures.columns import column_of
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.findings import Finding, read_findings
from reports.sets.machines import plain_name
from reports.sets.version import Version

MAX_FIGURES: Final = 6  # that are shown of a finding


@cache
def findings(version: Version) -> tuple[tuple[Version, Finding], ...]:
    """Return the findings of a version and its older ones, in their order. Raises ReportError for a wrong file."""
    return tuple((own, finding) for own in (version, *version.older) for finding in read_findings(own.folder))


def listing(version: Version) -> Html:
    """Show every finding below its claim."""
    return together(part for own, finding in findings(version) for part in section(own, finding))


def section(version: Version, finding: Finding) -> list[Html]:
    campaigns = [result_set.campaign for name in finding.sets for result_set in version.sets if result_set.name == name]
    places = dict.fromkeys(plain_name(campaign.largest_place) for campaign in campaigns if campaign.places)
    lines: dict[str, Sequence[str | None]] = {
        "How sure": [finding.status],
        "Measured": _measured(version, finding),
        "So what": [finding.so_what],
        "Where": ["; ".join(places)],
        "Corrects": [finding.replaces],
    }
    known = {name: [text for text in texts if text] for name, texts in lines.items() if any(texts)}
    markup = "".join(
        f"<dt>{name}</dt>{''.join(f'<dd>{html.escape(text)}</dd>' for text in texts)}" for name, texts in known.items()
    )
    text = "\n".join(f"{name}: {'; '.join(texts)}" for name, texts in known.items())
    return [heading(finding.claim, anchor=finding.id), Html(markup=f"<dl>{markup}</dl>", text=text)]


def figures_of(version: Version, finding: Finding) -> list[Mapping[str, Any]]:
    """Return the rows of its figures, the surest first."""
    parts = ((name.partition("/"), row) for name, row in rows_by_id(version).items() if finding.figures)
    rows = [row for (own, _, rest), row in parts if own in finding.sets and fnmatch(rest, finding.figures or "")]
    return sorted(rows, key=lambda row: row["low"] is None)


def _measured(version: Version, finding: Finding) -> list[str]:
    """Its figures, below the heading of their column and the title of their set; whether there are more."""
    rows, lines = figures_of(version, finding), []
    titles = {own.name: own.title for own in version.sets}
    names = {f"{row['set']}/{row['configuration']}": configuration_name(row) for row in runs_of(version).configurations}
    above = {row["id"]: f"{column_of(row['id']).heading} ({titles[row['id'].partition('/')[0]]}):" for row in rows}
    for line, own in groupby(rows[:MAX_FIGURES], key=lambda row: above[row["id"]]):
        lines.append(line)
        for row in own:
            subject = row["id"].rpartition("/")[0]  # a series or a set is no configuration
            lines.append(f"{measured(row)}: {names.get(subject, subject.partition('/')[2] or subject)}")
    return [*lines, "more in figures.csv"] if len(rows) > MAX_FIGURES else lines
