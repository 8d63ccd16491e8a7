"""The open division beside the closed one, set by set."""

from reports.divisions import gains_table
from reports.result_sets import Version
from reports.tables import Displayed, Html, heading, together


def gains(version: Version) -> Html:
    parts: list[Displayed] = []
    for one in version.scaling:
        if any(result.case.division == "open" for result in one.campaign.results):
            parts += [heading(one.title or "This campaign"), gains_table(one.campaign.results)]
    return together(parts)
