"""What tuned cases of a series gain over the case as shipped, in answers, charts and tables."""

from collections.abc import Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.divisions import Gain, gains
from reports.display import division_tables
from reports.display.addresses import address_of_series
from reports.display.charts import gains as gain_charts
from reports.display.html import Displayed, Html, heading, paragraph, together


def of_series(series: Campaign, *, depth: int = 4) -> Html:
    """Answers, chart and tables for each case as shipped. ``depth``: of the headings of several."""
    groups = _groups(series)
    if not groups:
        return paragraph("No case ran as shipped, so the tuned ones cannot be compared.")
    parts: list[Displayed] = []
    for found in groups.values():
        if len(groups) > 1:
            parts.append(heading(division_tables.who(found[0].closed), depth=depth))
        parts += _answers(found)
        if any(gain.gain for gain in found):
            parts.append(gain_charts.gains(series, found))
        parts += [division_tables.throughput(found), division_tables.learning(found)]
    return together(parts)


def headline(series: Campaign, *, label: str) -> Html:
    """What each change gains, in frames a second and in time to the reward as shipped."""
    found = [gain for group in _groups(series).values() for gain in group]
    address = address_of_series(series.rows[0].task, series.rows[0].series)
    return together(
        [
            *_answers(found),
            paragraph("Each change compared with the same case as shipped:"),
            division_tables.headline(found, address=address, label=label),
        ]
    )


def first_chart(series: Campaign) -> Displayed:
    """Chart of the first case as shipped that a tuned case can be compared with, half as wide as a page."""
    for found in _groups(series).values():
        if any(gain.gain for gain in found):
            return gain_charts.gains(series, found, is_small=True)
    return paragraph("No tuned case completed together with its case as shipped.")


def _answers(found: Sequence[Gain]) -> list[Html]:
    """The time to a reward of each case with several seeds; it matters more than frames."""
    return [
        paragraph(f"{division_tables.short_name(gain, found)}: {division_tables.time_to_reward(gain)}")
        for gain in found
        if division_tables.has_seeds(gain)
    ]


def _groups(series: Campaign) -> dict[str, list[Gain]]:
    return division_tables.by_closed(gains(series.results, series.twins))
