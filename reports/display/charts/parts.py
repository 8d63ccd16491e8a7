"""The form ``parts``: what makes up a whole, such as an iteration, stacked, a bar for each case. Pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import altair as alt

from reports.display.charts.drawing import FONT_PX, Axis, Point, Spec, Texts, inline, layered
from reports.display.charts.rows import Rows
from reports.display.figure import INK

BAR_PX: Final = 18
ROW_PX: Final = 28
VALUE_PX: Final = 52  # right of the plot
FADED: Final = 0.15
LEGEND_COLUMNS: Final = "containerSize()[0] && containerSize()[0] < 500 ? 2 : 4"


def parts(points: Sequence[Point], texts: Texts, colours: Mapping[str, str], *, unit: str) -> Spec:
    """Draw a bar for each label, of a part for each kind as long as ``x``. ``colours``: of the kinds, in order."""
    bars = {label: list(of_label) for label, of_label in groupby(points, key=lambda point: point.label)}
    rows = Rows.of(list(bars), ROW_PX)
    totals = {label: sum(point.x for point in of_label) for label, of_label in bars.items()}
    axis = Axis(title=texts.x, low=0, high=max(totals.values()))
    y, places = rows.encoding(), dict(zip(bars, rows.marks_px, strict=True))
    present = [kind for kind in colours if any(point.kind == kind for point in points)]
    # A click on a legend's entry fades the other parts. The name is fixed: a counter would change from build to build.
    picked = alt.selection_point(name="picked", fields=["part"], bind="legend")
    values, ends = [], []
    for label, of_label in bars.items():
        start = 0.0
        for point in of_label:
            bar = {"configuration": label, "part": point.kind, "place": places[label]}
            values.append({**bar, "x": start, "x2": start + point.x})
            start += point.x
        ends.append({"place": places[label], "total": f"{totals[label]:.3g} {unit}"})
    drawn = (
        alt.Chart(inline(values))
        .mark_bar(size=BAR_PX, stroke="white", strokeWidth=1)
        .encode(
            x=axis.encoding(alt.X, "x"),
            x2="x2:Q",
            y=y,
            color=alt.Color(
                "part:N",
                title=None,
                sort=present,
                scale=alt.Scale(domain=present, range=[colours[kind] for kind in present]),
                legend=alt.Legend(columns=alt.ExprRef(LEGEND_COLUMNS), symbolType="square"),
            ),
            opacity=alt.OpacityValue(FADED, condition={"param": picked.name, "value": 1}),
            tooltip=["configuration:N", "part:N"],
        )
        .add_params(picked)
    )
    total = alt.Chart(inline(ends)).mark_text(align="left", fontSize=FONT_PX, fontWeight=600, color=INK)
    description = "; ".join(
        f"{label}: " + ", ".join(f"{point.kind} {point.x / totals[label]:.0%}" for point in of_label)
        for label, of_label in bars.items()
    )
    return layered(
        [
            drawn,
            total.encode(x=alt.value(alt.ExprRef("width + 6")), y=y, text="total:N"),
            rows.names(),
        ],
        texts,
        points,
        height=rows.height_px,
        room_px=VALUE_PX,
        description=description,
    )
