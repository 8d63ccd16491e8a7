"""Sets whose figures stand apart, because evidence is missing that other sets have."""

from reports.display import all_curves as at_a_glance
from reports.display import series_tables
from reports.display.contributors import byline
from reports.display.html import Html, paragraph, together
from reports.display.per_set import under_titles
from reports.sets.evidence import missing
from reports.sets.version import ResultSet, Version


def sets(version: Version) -> Html:
    """Show for each archived set why it is here, its curves and its cases."""
    return under_titles(version.archived, _set, are_named=True, depth=2)


def _set(one: ResultSet) -> Html:
    campaign = one.campaign
    return together(
        [
            byline(one.contributor),
            paragraph(f"{campaign.where}. {missing(campaign.results)}"),
            at_a_glance.table([one], label=f"Every curve, {one.title}"),
            series_tables.all_cases(campaign.rows, label=f"Every case, {one.title}"),
        ]
    )
