"""What a stack gives over another, and what a second node costs, against the number of ranks. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.pairs_of_cases import CasePair
from reports.display.charts.drawing import colour, dashed_line_at, faded_unless, figure, inline, pick, shape, tip
from reports.display.figure import Figure
from reports.display.html import Html, paragraph
from reports.display.series_tables import STACK_NAMES
from suite.statistics.intervals import Estimate

HEIGHT_PX: Final = 220


def ratios(series: Campaign, pairs: Sequence[CasePair], *, data: Html) -> Figure | Html:
    """Throughput over that of the other stack."""
    return _compared(
        series,
        [(f"{p.case.case.rl_library}: {STACK_NAMES[p.case.case.stack]}", p, p.over_base) for p in pairs],
        chart="stacks",
        title="Ratio of throughputs",
        number_format=".2f",
        equal=1,
        caption="Total frames per second over those of the stack that each is compared with, dashed. Whiskers: interval"
        " over rounds, where there are enough of them.",
        data=data,
    )


def costs(series: Campaign, pairs: Sequence[CasePair], *, data: Html) -> Figure | Html:
    """How much longer an iteration takes when the same ranks are spread over more nodes."""
    return _compared(
        series,
        [(f"{p.case.case.rl_library}, {p.case.case.nnodes} nodes", p, p.slower_by) for p in pairs],
        chart="nodes",
        title="Iteration longer by",
        number_format="+.0%",
        equal=0,
        caption="How much longer an iteration takes than with the same ranks on fewer nodes, dashed. Whiskers: interval"
        " over rounds, where there are enough of them.",
        data=data,
    )


def _compared(
    series: Campaign,
    compared: Sequence[tuple[str, CasePair, Estimate | None]],
    *,
    chart: str,
    title: str,
    number_format: str,
    equal: float,
    caption: str,
    data: Html,
) -> Figure | Html:
    points = [_point(who, pair, found) for who, pair, found in compared if found is not None]
    if not points:
        return paragraph("No two of these cases completed that could be compared.")
    who = list(dict.fromkeys(point["who"] for point in points))
    picked = pick("who")
    ranks = sorted({pair.case.case.world_size for _, pair, _ in compared})
    x = alt.X(
        "ranks:O",
        title="GPUs" if all(row.device == "cuda" for row in series.rows) else "Ranks",
        sort=ranks,
        axis=alt.Axis(labelAngle=0),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(format=number_format, tickCount=5))
    base = alt.Chart(inline(points)).encode(
        x=x, xOffset=alt.XOffset("who:N", sort=who), color=colour(who, "who"), opacity=faded_unless(picked)
    )
    tooltip = [
        tip("case_id:N", "Case"),
        tip("value:Q", title, number_format),
        tip("low:Q", "Interval from", number_format),
        tip("high:Q", "to", number_format),
    ]
    words = "; ".join(f"{point['who']}, {point['ranks']}: {format(point['value'], number_format)}" for point in points)
    return figure(
        [
            dashed_line_at(equal),
            base.mark_point(filled=True, size=75)
            .encode(y=y, shape=shape(who, "who"), tooltip=tooltip)
            .add_params(picked),
            base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
            base.mark_text(align="left", dx=9, fontSize=12, fontWeight=600).encode(
                y=y, text=alt.Text("value:Q", format=number_format)
            ),
        ],
        series,
        chart=chart,
        height=HEIGHT_PX,
        alt_text=f"{title}, by number of ranks. {words}.",
        caption=caption if len(who) > 1 else f"{who[0]}. {caption}",
        data=data,
    )


def _point(who: str, pair: CasePair, found: Estimate) -> dict[str, Any]:
    case = pair.case.case
    low, high = found.interval or (found.value, found.value)
    point: dict[str, Any] = {"who": who, "case_id": case.case_id, "ranks": case.world_size}
    return point | {"value": found.value, "low": low, "high": high}
