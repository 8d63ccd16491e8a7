"""Where it ran, and what env_check said there."""

from collections.abc import Hashable
from typing import Final

from reports import machine_tables
from reports.cost import cost_table
from reports.pages.contributors import byline
from reports.pages.under_titles import under_titles
from reports.places import Place
from reports.result_sets import ResultSet, Version
from reports.tables import Displayed, Html, bullets, heading, html_table, paragraph, together
from suite.statistics.aa_noise import NOISE_LEVEL

NOISE_RULE: Final = (
    "A case that ran twice, as an A/A pair, is two cases by name alone. The noise is what their medians lie apart at"
    f" most in {NOISE_LEVEL:.0%} of all ways to deal their rounds into two, of up to three rounds each in any way, and"
    " no less than as they ran. It holds how the host drifted between rounds. A further case that differs by nothing"
    " lies beyond it in one of four cases with two or three rounds each, and in one of seven with four or five (by"
    " simulation of rounds that are independent). A set's noise is that of its pair that has most."
)


def environments(version: Version) -> Html:
    """Every host, then what many of them have in common; whose a set is, where it is not the project's own."""
    sets = [(one.title, one.campaign.places) for one in version.sets]
    if not any(places for _, places in sets):
        return together(())
    return together(
        [
            machine_tables.hosts_table(sets, label="Hosts"),
            *(byline(one.contributor) for one in version.sets),
            heading("Platforms"),
            machine_tables.platforms_table(sets, label="Platforms"),
        ]
    )


def env_checks(version: Version) -> Html:
    """Of the hosts of the records, those of which the same was said together, then of reports beside the results."""
    alike: dict[Hashable, list[tuple[str, Place]]] = {}
    for one in version.sets:
        firsts: dict[Hashable, Place] = {}
        for place in one.campaign.places:
            firsts.setdefault((place.environment.host_label, _verdicts(place)), place)
        for place in firsts.values():
            shown = machine_tables.worth_showing(place.environment.checks)
            alike.setdefault((_verdicts(place), shown), []).append((one.title, place))
    parts: list[Displayed] = []
    for number, hosts in enumerate(alike.values(), start=1):
        names = [
            f"{title or 'This campaign'}: {place.environment.host_label or 'this machine'}" for title, place in hosts
        ]
        parts += [heading("The same of several"), bullets(names)] if len(hosts) > 1 else [heading(names[0])]
        parts.append(machine_tables.checks(hosts[0][1].environment.checks, {}, label=f"Checks of hosts, {number}"))
    for report in version.env_checks:
        parts.append(heading(f"{report.host}, stack {report.stack} ({report.name})"))
        parts.append(machine_tables.checks(report.checks, report.repairs, label=f"Checks of {report.name}"))
    return together(parts)


def _verdicts(place: Place) -> Hashable:
    """What was said of a host, without what changes by the minute, as free space does."""
    return tuple((check.name, check.verdict, check.fault) for check in place.environment.checks)


def noise(version: Version) -> Html:
    """What no difference at all looks like there: the baseline of every series ran twice."""
    pairs = [(one, pair) for one in version.sets for pair in one.twin_pairs]
    table = html_table(
        ["Set", "Case", "Rounds", "Medians as they ran", "Noise"],
        (
            [
                one.title or "This campaign",
                pair.case_id,
                f"{len(pair.times_s)} and {len(pair.twin_times_s)}",
                f"{pair.difference:+.1%}",
                f"{pair.noise:.1%}",
            ]
            for one, pair in pairs
        ),
        label="A/A pairs",
        num_text_columns=2,
    )
    unknown = [one.title or "This campaign" for one in version.sets if not one.twin_pairs]
    slowed = [f"{one.title}: {said}" for one in version.sets if (said := one.campaign.slowed_cores)]
    return together(
        [
            paragraph(NOISE_RULE),
            *([table] if pairs else []),
            *([paragraph(f"No case ran twice, so the noise is not known: {'; '.join(unknown)}.")] if unknown else []),
            *([bullets(slowed)] if slowed else []),
        ]
    )


def side_by_side(version: Version) -> Html:
    """Every verdict on whether cases may run side by side, with the rounds that it was found from."""
    asked = [one for one in version.sets if one.packing]
    if not asked:
        return paragraph("No campaign here asked.")
    return under_titles(asked, _verdict_on_neighbours, are_named=version.must_name_all_sets)


def _verdict_on_neighbours(one: ResultSet) -> Html:
    said = paragraph(str(one.packing))
    if one.campaign.packing is None:
        return said
    label = f"Rounds of the interference test, {one.title or 'this campaign'}"
    return together([said, machine_tables.interference_rounds(one.campaign.packing, label=label)])


def cost(version: Version) -> Html:
    """What each set cost, against a plain loop over Isaac Lab's own command line."""
    return under_titles(
        version.shown,
        lambda one: cost_table(one.campaign.cost, title=one.title),
        are_named=len(version.shown) > 1 or version.must_name_sets,
    )
