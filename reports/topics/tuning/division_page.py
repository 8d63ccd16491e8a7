"""Tuned cases compared with the case as shipped, set by set; first those with the most seeds."""

from reports.analysis.analysed_set import Campaign
from reports.display.division import of_series
from reports.display.html import Displayed, Html, answer_of_page, heading, together
from reports.sets.version import Version
from reports.topics.tuning.card import card


def has_tuned(version: Version) -> bool:
    return any(_tuned(one.campaign, one.title) for one in version.scaling)


def answer(version: Version) -> Html:
    """What the card of the first page says; nothing if no gain is clear."""
    found = card(version)
    return together([answer_of_page(f"{found.title}. {found.text}")] if found else [])


def of_version(version: Version) -> Html:
    found = [pair for one in version.scaling for pair in _tuned(one.campaign, one.title)]
    found.sort(key=lambda pair: -_num_seeds(pair[1]))
    parts: list[Displayed] = []
    for title, series in found:
        parts += [heading(title), of_series(series)]
    return together(parts)


def _num_seeds(series: Campaign) -> int:
    """Seeds of the case that has the fewest; 1 if all rounds have the same."""
    return min(len(one.completed) if one.case.seed_per_round else 1 for one in series.results)


def _tuned(campaign: Campaign, title: str) -> list[tuple[str, Campaign]]:
    learning = campaign.only(lambda result: result.case.learns)
    every = [(name, learning.series(name)) for name in learning.series_names]
    return [(f"{name}: {title}" if title else name, series) for name, series in every if series.kind == "tuned"]
