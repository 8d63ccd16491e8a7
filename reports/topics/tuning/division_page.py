"""Tuned cases compared with the case as shipped, set by set; first those with several seeds."""

from reports.analysis.analysed_set import Campaign
from reports.display.division import of_series
from reports.display.html import Displayed, Html, heading, together
from reports.sets.version import Version


def of_version(version: Version) -> Html:
    found = [pair for one in version.scaling for pair in _tuned(one.campaign, one.title)]
    found.sort(key=lambda pair: not any(result.case.seed_per_round for result in pair[1].results))
    parts: list[Displayed] = []
    for title, series in found:
        parts += [heading(title), of_series(series)]
    return together(parts)


def _tuned(campaign: Campaign, title: str) -> list[tuple[str, Campaign]]:
    learning = campaign.only(lambda result: result.case.learns)
    every = [(name, learning.series(name)) for name in learning.series_names]
    return [(f"{name}: {title}" if title else name, series) for name, series in every if series.is_tuned]
