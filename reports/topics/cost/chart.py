"""Hours against the GPU-hours that they cost, one point for each measured number of ranks. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.display.charts.drawing import PLAIN_NUMBER, colour, faded_unless, figure, inline, pick, shape, tip
from reports.display.figure import Figure
from reports.topics.cost import tables as choosing_tables
from reports.topics.cost.model import Choice, scaled
from suite.files.wording import counted

HEIGHT_PX: Final = 220
MILLION: Final = 1_000_000
MOST_MILLIONS: Final = 1000


def time_and_cost(series: Campaign, choices: Sequence[Choice], *, frames: int, unit: str) -> Figure:
    """Drawn for ``frames``; where scripts run, a slider changes them and both axes follow."""
    points = [point for one in choices for point in _points(one, unit, is_only=len(choices) == 1)]
    curves = list(dict.fromkeys(point["curve"] for point in points))
    picked = pick("curve")
    wanted = alt.param(
        name="millions",
        value=frames / MILLION,
        bind=alt.binding_range(min=1, max=MOST_MILLIONS, step=1, name="Millions of frames wanted: "),
    )
    x = alt.X(
        "cost:Q", title=f"{unit}-hours", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6, format=PLAIN_NUMBER)
    )
    y = alt.Y("hours:Q", title="Hours", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5, format=PLAIN_NUMBER))
    base = alt.Chart(inline(points)).encode(
        color=colour(curves), opacity=faded_unless(picked), detail=alt.Detail("curve:N")
    )
    for name in ("hours", "hours_low", "hours_high", "cost"):
        base = base.transform_calculate(name, f"datum.{name} * millions")
    tooltip = [
        tip("curve:N", "Curve"),
        tip("world_size:Q", f"{unit}s"),
        tip("hours:Q", "Hours", ".3g"),
        tip("hours_low:Q", "Interval from", ".3g"),
        tip("hours_high:Q", "to", ".3g"),
        tip("cost:Q", f"{unit}-hours", ".3g"),
        tip("rounds:Q", "Rounds"),
    ]
    marks = base.mark_point(filled=True, size=75).encode(x=x, y=y, shape=shape(curves), tooltip=tooltip)
    words = "; ".join(
        f"{point['curve']}, {point['label']}: {point['hours'] * frames / MILLION:.3g} h" for point in points
    )
    return figure(
        [
            marks.add_params(picked, wanted),
            base.mark_line(strokeWidth=1.5, strokeDash=[2, 2]).encode(x=x, y=y, order=alt.Order("world_size:Q")),
            base.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("hours_low:Q"), y2=alt.Y2("hours_high:Q")),
            base.mark_text(align="left", dx=8, dy=-8, fontSize=12, fontWeight=600).encode(
                x=x, y=y, text=alt.Text("label:N")
            ),
        ],
        series,
        chart="time-and-cost",
        height=HEIGHT_PX,
        alt_text=f"Hours over {unit}-hours for {frames:,} frames. {words}.",
        caption="",
        is_small=True,
        data=choosing_tables.options(
            choices, frames=frames, unit=unit, label=f"Time and cost of {series.rows[0].series}"
        ),
    )


def _points(one: Choice, unit: str, *, is_only: bool) -> list[dict[str, Any]]:
    """Hours of a million frames; an interval that is not known has no length."""
    points = []
    for option in one.options:
        hours = scaled(option.wall_s_per_frame, MILLION / choosing_tables.SECONDS_PER_HOUR)
        low, high = hours.interval or (hours.value, hours.value)
        points.append(
            {
                "curve": one.curve,
                "world_size": option.world_size,
                "label": counted(option.world_size, unit) if is_only else str(option.world_size),
                "rounds": option.rounds,
                "hours": hours.value,
                "hours_low": low,
                "hours_high": high,
                "cost": hours.value * option.world_size,
            }
        )
    return points
