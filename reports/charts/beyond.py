"""Scaling efficiency of one curve: as measured, and then as predicted over assumed networks. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.beyond import Carried
from reports.campaign import Campaign
from reports.charts.drawing import PALETTE, SHAPES, counts_axis, efficiency_axis, figure, tip
from reports.figure import INK, RULE, Figure
from reports.scaling_groups import ScalingGroup, point_efficiency
from reports.tables import Html, percent

HEIGHT_PX: Final = 220
PREDICTED_DASH: Final = [3, 3]
BAND_OPACITY: Final = 0.15
HEADROOM: Final = 1.05


def efficiency(series: Campaign, group: ScalingGroup, carried: Sequence[Carried], *, number: int, data: Html) -> Figure:
    """Measured: black, filled, solid. Predicted: hollow, dashed, with its band. ``number`` makes the id unique."""
    measured: list[dict[str, Any]] = [
        {"world_size": point.world_size, "efficiency": point_efficiency(group, point).value} for point in group.measured
    ]
    largest = measured[-1]["world_size"]
    predicted = [point for one in carried for point in _points(one, measured[-1])]
    top = HEADROOM * max(1.0, *(point["high"] for point in predicted), *(point["efficiency"] for point in measured))
    x = counts_axis("world_size", "GPUs", (point["world_size"] for point in (*measured, *predicted)))
    y = efficiency_axis("efficiency", top=top)
    edge = alt.Chart(alt.InlineData(values=[{"world_size": largest}])).encode(x=x)
    side = {"y": alt.value(HEIGHT_PX - 8)}
    known = alt.Chart().encode(x=x, y=y, tooltip=[tip("world_size:Q", "GPUs"), tip("efficiency:Q", "Measured", ".1%")])
    return figure(
        [
            _predicted(predicted, kinds=[_kind(one) for one in carried], largest=largest, x=x, y=y),
            edge.mark_rule(color=RULE, strokeWidth=1),
            edge.mark_text(text="measured", align="right", dx=-5, color=INK, fontSize=12).encode(**side),
            edge.mark_text(text="predicted", align="left", dx=5, color=INK, fontSize=12, fontStyle="italic").encode(
                **side
            ),
            alt.LayerChart(
                layer=[
                    known.mark_line(strokeWidth=2, color=INK),
                    known.mark_point(filled=True, size=75, opacity=1, color=INK),
                ],
                data=alt.InlineData(values=measured),
            ),
        ],
        series,
        chart=f"beyond-{number}",
        height=HEIGHT_PX,
        alt_text=_spoken(group, carried, measured),
        caption=f"{group.series}, {group.curve}. Filled and solid: measured. Hollow and dashed: predicted, with its"
        " band, over the quickest and the slowest network assumed.",
        data=data,
    )


def _predicted(points: list[dict[str, Any]], *, kinds: list[str], largest: int, x: alt.X, y: alt.Y) -> alt.LayerChart:
    base = alt.Chart().encode(x=x)
    legend = alt.Legend(columns=1, symbolOpacity=1)
    scale = alt.Scale(domain=kinds, range=list(PALETTE))
    colours = alt.Color("kind:N", title=None, sort=kinds, scale=scale, legend=legend)
    shapes = alt.Shape(
        "kind:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds, range=list(SHAPES)), legend=legend
    )
    low = y.copy()
    low.shorthand = "low:Q"
    tooltip = [
        tip("kind:N", "What"),
        tip("world_size:Q", "GPUs"),
        tip("efficiency:Q", "Efficiency", ".1%"),
        tip("low:Q", "Band from", ".1%"),
        tip("high:Q", "to", ".1%"),
    ]
    hollow = base.mark_point(filled=False, size=45, strokeWidth=1.5, opacity=1).encode(
        y=y, color=colours, shape=shapes, tooltip=tooltip
    )
    return alt.LayerChart(
        layer=[
            base.mark_area(opacity=BAND_OPACITY).encode(y=low, y2="high:Q", color=colours),
            base.mark_line(strokeDash=PREDICTED_DASH, strokeWidth=1.5).encode(y=y, color=colours),
            hollow.transform_filter(f"datum.world_size > {largest}"),
        ],
        data=alt.InlineData(values=points),
    )


def _points(one: Carried, last: dict[str, Any]) -> list[dict[str, Any]]:
    """From the last measured count, where line and band begin."""
    begin = {"kind": _kind(one), **last, "low": last["efficiency"], "high": last["efficiency"]}
    return [
        begin,
        *(
            {
                "kind": _kind(one),
                "world_size": point.world_size,
                "efficiency": point.efficiency,
                "low": point.efficiency_low,
                "high": point.efficiency_high,
            }
            for point in one.points
        ),
    ]


def _kind(one: Carried) -> str:
    return f"predicted, {one.network}"


def _spoken(group: ScalingGroup, carried: Sequence[Carried], measured: Sequence[dict[str, Any]]) -> str:
    seen = ", ".join(f"{percent(point['efficiency'])} at {point['world_size']}" for point in measured)
    guesses = "; ".join(
        f"{one.network}: {percent(one.points[-1].efficiency)} at {one.points[-1].world_size}"
        for one in carried
        if one.points
    )
    return f"Scaling efficiency over GPUs of {group.series}, {group.curve}. Measured: {seen}. Predicted: {guesses}."
