"""Total frames of several trainings over those of one, against their number. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.display.charts.drawing import colour, dashed_line_at, faded_unless, figure, inline, pick, shape, tip
from reports.display.figure import Figure
from reports.display.html import Html
from reports.topics.shared_gpu.model import Group, Shared

HEIGHT_PX: Final = 260


def drawn(campaign: Campaign, found: Sequence[Group], names: Sequence[str], *, data: Html) -> Figure:
    """``names``: a label of each group."""
    points = [
        point
        for group, name in zip(found, names, strict=True)
        for each in group.numbers[1:]
        if (point := _point(name, each)) is not None
    ]
    picked = pick("name")
    x = alt.X("trainings:O", title="Trainings at the same time", axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title="Total frames per second, one is 1", scale=alt.Scale(zero=True))
    base = alt.Chart(inline(points)).encode(
        x=x, color=colour(names, "name"), opacity=faded_unless(picked), xOffset=alt.XOffset("name:N", sort=list(names))
    )
    tooltip = [
        tip("case_id:N", "Case"),
        tip("value:Q", "Times one", ".3g"),
        tip("low:Q", "Interval from", ".3g"),
        tip("high:Q", "to", ".3g"),
    ]
    words = "; ".join(f"{point['name']}, {point['trainings']}: {point['value']:.2f}" for point in points)
    return figure(
        [
            dashed_line_at(1),
            base.mark_point(filled=True, size=75)
            .encode(y=y, shape=shape(names, "name"), tooltip=tooltip)
            .add_params(picked),
            base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
            base.mark_text(align="left", dx=9, fontSize=12, fontWeight=600).encode(
                y=y, text=alt.Text("value:Q", format=".2f")
            ),
        ],
        campaign,
        chart="shared-gpu",
        height=HEIGHT_PX,
        alt_text=f"Total frames per second over those of one training. {words}.",
        caption="Frames per second of all trainings together over those of one alone, dashed. Whiskers: intervals,"
        " where runs are enough.",
        data=data,
    )


def _point(name: str, each: Shared) -> dict[str, Any] | None:
    if each.over_one is None:
        return None
    value = each.over_one.value
    low, high = each.over_one.interval or (value, value)
    point = {"name": name, "case_id": each.result.case.case_id, "trainings": each.trainings}
    return {**point, "value": value, "low": low, "high": high}
