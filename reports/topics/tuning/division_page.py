"""Tuned cases compared with the case as shipped, set by set."""

from reports.display.division import of_series
from reports.display.html import Displayed, Html, heading, together
from reports.sets.version import Version


def of_version(version: Version) -> Html:
    parts: list[Displayed] = []
    for one in version.scaling:
        tuned = one.campaign.only(lambda result: result.case.learns)
        for name in tuned.series_names:
            series = tuned.series(name)
            if series.is_tuned:
                parts += [heading(f"{name}: {one.title}" if one.title else name), of_series(series)]
    return together(parts)
