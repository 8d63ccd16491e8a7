"""What tuned cases of a series gain over the closed ones: on its task's page, with the curves and in its division."""

from reports.analysis.analysed_set import Campaign
from reports.analysis.divisions import Gain, gains
from reports.display import division_tables
from reports.display.addresses import address_of_series
from reports.display.charts import gains as gain_charts
from reports.display.html import Displayed, Html, heading, paragraph, together


def of_series(series: Campaign, *, depth: int = 4) -> Html:
    """Chart and tables beside each closed case. ``depth``: of the headings of several."""
    groups = _groups(series)
    if not groups:
        return paragraph("No closed case stands beside the tuned ones, so there is nothing to hold them against.")
    parts: list[Displayed] = []
    for found in groups.values():
        if len(groups) > 1:
            parts.append(heading(division_tables.who(found[0].closed), depth=depth))
        if any(gain.gain for gain in found):
            parts.append(gain_charts.gains(series, found))
        parts += [division_tables.throughput(found), division_tables.learning(found)]
    return together(parts)


def headline(series: Campaign, *, label: str) -> Html:
    """What each change gains, in frames a second and in time to the closed case's reward."""
    found = [gain for group in _groups(series).values() for gain in group]
    address = address_of_series(series.rows[0].task, series.rows[0].series)
    return together(
        [
            paragraph("Each change beside the same case as upstream ships it:"),
            division_tables.headline(found, address=address, label=label),
        ]
    )


def first_chart(series: Campaign) -> Displayed:
    """Of the first closed case that something was measured beside, half as wide as a page."""
    for found in _groups(series).values():
        if any(gain.gain for gain in found):
            return gain_charts.gains(series, found, is_small=True)
    return paragraph("No tuned case completed beside its closed one.")


def _groups(series: Campaign) -> dict[str, list[Gain]]:
    return division_tables.by_closed(gains(series.results, series.twins))
