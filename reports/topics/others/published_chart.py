"""Published efficiencies beside those of this report. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import CaseRow
from reports.display import series_tables
from reports.display.charts.drawing import (
    colour,
    counts_axis,
    dashed_line_at,
    efficiency_axis,
    faded_unless,
    figure,
    inline,
    pick,
    shape,
    tip,
)
from reports.display.figure import Figure
from reports.topics.others.published import Source, Table, efficiency

HEIGHT_PX: Final = 220
HEADROOM: Final = 1.05


def efficiencies(table: Table, ours: Sequence[tuple[Campaign, Sequence[CaseRow]]], source: Source) -> Figure:
    """Efficiency of the total over GPUs; whiskers are rounding of theirs, rounds of ours."""
    values = _points(table, ours, source)
    who = list(dict.fromkeys(point["who"] for point in values))
    picked = pick("who")
    x = counts_axis("gpus", "GPUs", (point["gpus"] for point in values))
    top = HEADROOM * max(1.0, *(point["high"] for point in values))
    y = efficiency_axis("efficiency", top=top, title="Efficiency of total FPS")
    base = alt.Chart(inline(values)).encode(x=x, color=colour(who, "who"), opacity=faded_unless(picked))
    tooltip = [tip("who:N", "Measured by"), tip("gpus:Q", "GPUs"), tip("efficiency:Q", "Efficiency", ".1%")]
    points = base.mark_point(filled=True, size=75).encode(y=y, shape=shape(who, "who"), tooltip=tooltip)
    series, *others = (campaign for campaign, _ in ours)
    words = "; ".join(f"{point['who']}, {point['gpus']}: {point['efficiency']:.0%}" for point in values)
    return figure(
        [
            dashed_line_at(1),
            points.add_params(picked),
            base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
            base.mark_line(strokeWidth=2).encode(y=y),
        ],
        series,
        chart=f"published-{source.name}",
        height=HEIGHT_PX,
        alt_text=f"Efficiency of the total over GPUs. {words}.",
        caption="Efficiency of the total. Other hardware, other versions and other physics: only the shape of the"
        " curves can be compared. Whiskers: what rounding leaves open in theirs, the interval over rounds in ours.",
        data=series_tables.speedups([row for _, rows in ours for row in rows]),
        others=others,
    )


def _points(table: Table, ours: Sequence[tuple[Campaign, Sequence[CaseRow]]], source: Source) -> list[dict[str, Any]]:
    theirs = source.author.partition(",")[0]
    values: list[dict[str, Any]] = []
    for row in table.rows:
        found = efficiency(table, row)
        if found is not None:
            value, (low, high) = found
            values.append({"who": theirs, "gpus": row.gpus, "efficiency": value, "low": low, "high": high})
    for series, rows in ours:
        for case in rows:
            if case.scaling_efficiency is None:
                continue
            low, high = case.scaling_efficiency_interval or (case.scaling_efficiency, case.scaling_efficiency)
            values.append(
                {"who": f"labscale, {series.title or 'this report'}", "gpus": case.world_size}
                | {"efficiency": case.scaling_efficiency, "low": low, "high": high}
            )
    return values
