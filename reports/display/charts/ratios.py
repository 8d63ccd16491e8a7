"""Ratios with their intervals, one line for each, around 1. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.display.charts.drawing import CASE_LABEL_LIMIT, PALETTE, RULE_DASH, figure, inline, tip
from reports.display.figure import RULE, Figure
from reports.display.html import Html
from suite.statistics.intervals import Estimate

ROW_PX: Final = 44
WHISKERS: Final = "Whiskers: intervals, where runs are enough."


def ratio_lines(
    campaign: Campaign,
    found: Mapping[str, tuple[str, Estimate]],
    *,
    chart: str,
    title: str,
    said: str,
    data: Html,
) -> Figure:
    """Draw ``found``: label -> case id and ratio. ``title``: of the axis. ``said``: what a ratio is, a sentence."""
    points = [_point(name, case_id, value) for name, (case_id, value) in found.items()]
    return figure(
        _layers(points, title),
        campaign,
        chart=chart,
        height=ROW_PX * len(points),
        alt_text=f"{said} {'; '.join(f'{point["name"]}: {point["value"]:.2f}' for point in points)}.",
        caption=f"{said} Dashed: 1. {WHISKERS}",
        data=data,
    )


def _layers(points: Sequence[Mapping[str, Any]], title: str) -> list[alt.Chart]:
    axis = alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False, grid=True, domain=False)
    y = alt.Y("name:N", sort=[point["name"] for point in points], title=None, axis=axis)
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4))
    base = alt.Chart(inline(points)).encode(y=y, color=alt.value(PALETTE[0]))
    tooltip = [
        tip("case_id:N", "Case"),
        tip("value:Q", title, ".3g"),
        tip("low:Q", "Interval from", ".3g"),
        tip("high:Q", "to", ".3g"),
    ]
    return [
        alt.Chart(inline([{}])).mark_rule(color=RULE, strokeDash=RULE_DASH).encode(x=alt.datum(1)),
        base.mark_point(filled=True, size=80).encode(x=x, tooltip=tooltip),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        base.mark_text(dy=-12, fontSize=12, fontWeight=600).encode(x=x, text=alt.Text("value:Q", format=".2f")),
    ]


def _point(name: str, case_id: str, value: Estimate) -> dict[str, Any]:
    low, high = value.interval or (value.value, value.value)
    return {"name": name, "case_id": case_id, "value": value.value, "low": low, "high": high}
