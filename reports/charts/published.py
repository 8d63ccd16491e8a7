"""Published efficiencies beside those of this report. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports import series_tables
from reports.analysis import CaseRow
from reports.campaign import Campaign
from reports.charts.drawing import colour, faded_unless, figure, pick, shape, tip
from reports.figure import RULE, Figure
from reports.published import Source, Table, efficiency

HEIGHT_PX: Final = 220


def efficiencies(table: Table, ours: Sequence[tuple[Campaign, Sequence[CaseRow]]], source: Source) -> Figure:
    """Efficiency of the total over GPUs; whiskers are rounding of theirs, rounds of ours."""
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
    who = list(dict.fromkeys(point["who"] for point in values))
    picked = pick("who")
    x = alt.X(
        "gpus:Q",
        title="GPUs, log scale",
        scale=alt.Scale(type="log", base=2, padding=24, nice=False),
        axis=alt.Axis(values=sorted({point["gpus"] for point in values}), format="d", grid=False),
    )
    y = alt.Y(
        "efficiency:Q",
        title="Efficiency of total FPS",
        scale=alt.Scale(domain=[0, max(1.05, *(point["high"] * 1.05 for point in values))], nice=False),
        axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    base = alt.Chart(alt.InlineData(values=values)).encode(x=x, color=colour(who, "who"), opacity=faded_unless(picked))
    tooltip = [tip("who:N", "Measured by"), tip("gpus:Q", "GPUs"), tip("efficiency:Q", "Efficiency", ".1%")]
    ideal = alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=RULE, strokeDash=[5, 4]).encode(y=alt.datum(1))
    points = base.mark_point(filled=True, size=75).encode(y=y, shape=shape(who, "who"), tooltip=tooltip)
    series, *others = (campaign for campaign, _ in ours)
    words = "; ".join(f"{point['who']}, {point['gpus']}: {point['efficiency']:.0%}" for point in values)
    return figure(
        [
            ideal,
            points.add_params(picked),
            base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
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
