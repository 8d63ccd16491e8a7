"""What another stack costs, in words and as a table, on pages that send the reader to that of the stacks."""

from collections.abc import Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.stack_parts import stack_pairs
from reports.display import pair_tables
from reports.display.html import Html, bullets, link, paragraph, together
from reports.sets.version import ResultSet, Version


def stacks_in_words(version: Version) -> Html:
    """A sentence for each case on another stack, and the way to their page."""
    campaigns = (one.campaign for one in version.scaling)
    series = (campaign.series(name) for campaign in campaigns for name in campaign.series_names)
    said = pair_tables.cases_in_words(pair for one in series for pair in stack_pairs(one))
    if not said:
        return paragraph("No case ran on two stacks.")
    return together([bullets(said), bullets([link("Stacks side by side", "stacks.html")])])


def stacks_of_set(one: ResultSet) -> Html:
    """The table of a set on the first page: every series in one."""
    found = [pair for name in one.campaign.series_names for pair in stack_pairs(one.campaign.series(name))]
    rows = {row.case_id: row for row in one.campaign.rows}
    words = "The same case on one number of GPUs, on another stack: frames per second, learning included."
    table = pair_tables.stacks(found, rows, label=f"Stacks {one.title}".strip())
    return together([paragraph(words), table, bullets([link("Stacks side by side", "stacks.html")])])


def stacks_of(parts: Sequence[Campaign]) -> Html:
    """The sentences of one series; nothing where it ran on one stack."""
    said = pair_tables.cases_in_words(pair for part in parts for pair in stack_pairs(part))
    return together([bullets(said), bullets([link("Stacks side by side", "stacks.html")])] if said else [])
