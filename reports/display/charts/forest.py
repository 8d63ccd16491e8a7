"""The form ``forest``: ratios with their intervals, a row each, and 1 marked in every row. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.display.charts.drawing import (
    FONT_PX,
    PALETTE,
    Axis,
    Point,
    Spec,
    Texts,
    bounds,
    inline,
    layered,
    log_ticks,
    whiskers,
)
from reports.display.charts.rows import Rows
from reports.display.figure import INK, RULE
from suite.statistics.intervals import Estimate

MARK_PX: Final = 22  # of a row, below its name
VALUE_PX: Final = 44  # right of the plot


def row(label: str, ratio: Estimate, case_id: str, *, kind: str) -> Point:
    """Return a row of ``forest``."""
    return Point(label=label, x=ratio.value, interval=ratio.interval, kind=kind, case=case_id)


def forest(points: Sequence[Point], texts: Texts) -> Spec:
    """Draw a row for each point, whose ``x`` is the ratio, in the order of the points."""
    rows = Rows.of([point.label for point in points], MARK_PX)
    axis = _axis(points, texts)
    x, y = axis.encoding(alt.X, "x"), rows.encoding()
    kinds = list(dict.fromkeys(point.kind for point in points))
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=list(PALETTE[: len(kinds)])), legend=None)
    values: list[dict[str, Any]] = [
        {"kind": point.kind, "place": at, "x": point.x, "label": point.label, "Configuration": point.case}
        for point, at in zip(points, rows.marks_px, strict=True)
    ]
    drawn = [
        {"kind": value["kind"], "place": value["place"], **ends}
        for point, value in zip(points, values, strict=True)
        for ends in bounds(point)
    ]
    base = alt.Chart(inline(values)).encode(y=y)
    tooltip = ["label:N", alt.Tooltip("x:Q", title=texts.x, format=".3g"), "Configuration:N"]
    return layered(
        [
            base.mark_tick(color=RULE, thickness=1.5, size=MARK_PX, orient="vertical").encode(x=alt.datum(1)),
            base.mark_point(filled=True, size=80, opacity=1).encode(x=x, color=colour, tooltip=tooltip),
            *whiskers(drawn, along="x", across=y, colour=colour),
            base.mark_text(align="left", fontSize=FONT_PX, fontWeight=600, color=INK).encode(
                x=alt.value(alt.ExprRef("width + 8")), text=alt.Text("x:Q", format=".2f")
            ),
            rows.names(),
        ],
        texts,
        points,
        height=rows.height_px,
        room_px=VALUE_PX,
        description="; ".join(f"{point.label}: {point.x:.2f}" for point in points),
    )


def _axis(points: Sequence[Point], texts: Texts) -> Axis:
    values = [1.0, *(value for point in points for value in (point.x, *(point.interval or ())))]
    low, high = min(values) / 1.05, max(values) * 1.05
    return Axis(
        title=f"{texts.x}, log scale",
        low=low,
        high=high,
        ticks=log_ticks(low, high),
        base=10,
        number="~g",
        has_grid=False,
    )
