"""Every curve over numbers of ranks in one table, whichever set it is of."""

from collections.abc import Iterator, Sequence

from reports.analysis.scaling.scaling_groups import ScalingGroup, point_efficiency, scaling_groups
from reports.analysis.scaling.verdicts import verdict
from reports.display.addresses import address_of_series
from reports.display.html import (
    MISSING,
    Cell,
    Html,
    count,
    estimated,
    html_table,
    link,
    paragraph,
    percent,
    percent_interval,
    rounds_text,
    together,
)
from reports.sets.version import ResultSet, Version
from suite.statistics.intervals import mean_of


def curves(version: Version) -> Html:
    """One row for each curve with several numbers of ranks, by series, with the rule; a sentence when there is none."""
    shown = table(version.scaling, label="Every curve")
    rule = (
        "Frames per second and efficiency are those of the most ranks that completed."
        " Sets are of different hosts, so rows of two sets do not compare libraries or series: each is compared with"
        " fewer ranks of its own host. The reasons are below."
    )
    return together([shown, paragraph(rule)]) if any(_curves(version.scaling)) else shown


def table(sets: Sequence[ResultSet], *, label: str) -> Html:
    """One row for each curve with several numbers of ranks, by series; a sentence when there is none."""
    found = sorted(_curves(sets), key=lambda curve: (curve[1].series, curve[1].curve))
    if not found:
        return paragraph("Nothing here ran on several numbers of ranks, so nothing is known of scaling.")
    return html_table(
        ["Series", "Set", "Ranks", "Frames per second", "Efficiency", "Interval", "Rounds", "Verdict"],
        (_row(one, group) for one, group in found),
        label=label,
        num_text_columns=2,
        text_headings=("Rounds", "Verdict"),
    )


def _curves(sets: Sequence[ResultSet]) -> Iterator[tuple[ResultSet, ScalingGroup]]:
    for one in sets:
        if one.campaign.pairs_without_scaling or one.campaign.compares_stacks_alone:
            continue
        kept = {name for name in one.campaign.series_names if one.campaign.series(name).kind == "scaling"}
        for group in scaling_groups([each for each in one.campaign.with_twins if each.case.learns]):
            if group.series in kept and len(group.measured) > 1:
                yield one, group


def _row(one: ResultSet, group: ScalingGroup) -> list[Cell]:
    most = group.measured[-1]
    task = one.campaign.series(group.series).rows[0].task
    # Not the verdict's, which may be decided at fewer ranks.
    efficiency = point_efficiency(group, most) if group.baseline.times_s else None
    return [
        link(f"{group.series}: {group.curve}", address_of_series(task, group.series)),
        one.title,
        ", ".join(str(point.world_size) for point in group.measured),
        estimated(mean_of(most.times_s.values()).mapped(lambda time_s: most.frames_per_iteration / time_s), count),
        MISSING if efficiency is None else percent(efficiency.value),
        MISSING if efficiency is None else percent_interval(efficiency.interval),
        rounds_text([len(point.times_s) for point in group.measured]),
        verdict(group).word or MISSING,
    ]
