"""Sets whose figures stand apart, because evidence is missing that other sets have."""

from reports import series_tables
from reports.evidence import missing
from reports.neighbours import neighbours_sentence
from reports.pages import at_a_glance
from reports.pages.contributors import byline
from reports.pages.under_titles import under_titles
from reports.result_sets import ResultSet, Version
from reports.tables import Html, paragraph, together


def sets(version: Version) -> Html:
    """Show for each archived set why it is here, its curves and its cases."""
    return under_titles(version.archived, _set, are_named=True, depth=2)


def _set(one: ResultSet) -> Html:
    campaign = one.campaign
    return together(
        [
            byline(one.contributor),
            paragraph(f"{campaign.where}. {missing(campaign.results)} {neighbours_sentence(campaign.completed)}"),
            at_a_glance.table([one], label=f"Every curve, {one.title}"),
            series_tables.all_cases(campaign.rows, label=f"Every case, {one.title}"),
        ]
    )
