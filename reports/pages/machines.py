"""Where it ran, and what env_check said there."""

from collections.abc import Iterator

from reports import machine_tables
from reports.cost import cost_table
from reports.pages.contributors import byline
from reports.result_sets import ResultSet, Version
from reports.tables import Displayed, Html, heading, paragraph, together


def environments(version: Version) -> Html:
    return together(part for one in version.sets for part in _set(one))


def env_checks(version: Version) -> Html:
    """Of every host of the records, then of reports that were kept beside the results."""
    parts: list[Displayed] = []
    for one in version.sets:
        places = {place.environment.checks: place for place in one.campaign.places}
        for index, (checks, place) in enumerate(places.items(), start=1):
            label = place.environment.host_label or one.title or "this machine"
            parts.append(heading(f"{one.title or 'This campaign'}: {label}"))
            parts.append(machine_tables.checks(checks, {}, label=f"Checks of {one.title or 'the campaign'}, {index}"))
    for report in version.env_checks:
        parts.append(heading(f"{report.host}, stack {report.stack} ({report.name})"))
        parts.append(machine_tables.checks(report.checks, report.repairs, label=f"Checks of {report.name}"))
    return together(parts)


def noise(version: Version) -> Html:
    """What no difference at all looks like there: the baseline of every series ran twice."""
    return together(
        paragraph(
            f"{one.title or 'This campaign'}: "
            + (
                "no case ran twice against itself, so the noise of this machine is not known."
                if one.noise is None
                else f"a case and its twin, which differ in nothing, lay up to {one.noise:.1%} apart."
            )
        )
        for one in version.sets
    )


def _set(one: ResultSet) -> Iterator[Displayed]:
    title = one.title or "This campaign"
    yield heading(title)
    yield byline(one.contributor)
    yield machine_tables.places_table(one.campaign.places, label=f"Environments of {title}")


def cost(version: Version) -> Html:
    """What each set cost, against a plain loop over Isaac Lab's own command line."""
    parts: list[Displayed] = []
    for one in version.scaling:
        if version.must_name_sets:
            parts.append(heading(one.title))
        parts.append(cost_table(one.campaign.cost))
    return together(parts)
