"""The form ``sweep``: a value over a setting, such as frames per second over environments. Pure."""

from collections.abc import Sequence
from typing import Final

import altair as alt

from reports.display.charts import drawing
from reports.display.charts.drawing import SHORT_NUMBER, Axis, Point, Spec, Texts, layered, log_ticks

HEIGHT_PX: Final = 250
ROOM: Final = 1.08


def sweep(points: Sequence[Point], texts: Texts) -> Spec:
    """Draw a line for each label, both axes logarithmic."""
    x, y = _axes(points, texts)
    ends = drawing.ends_of(points)
    labels = drawing.label_lines({label: f"{end.y:,.0f} at {end.x:,.0f}" for label, end in ends.items()})
    height = drawing.height_for(labels, HEIGHT_PX)
    across, up = x.encoding(alt.X, "x"), y.encoding(alt.Y, "y")
    return layered(
        [
            drawing.lines(points, across, up),
            *drawing.line_whiskers(points, across),
            *drawing.end_labels(points, labels, y, height),
            *drawing.dots(points, across, up, {texts.x: ",.0f", texts.y: ",.0f"}),
        ],
        texts,
        points,
        height=height,
        room_px=drawing.room_of(labels),
        description="; ".join(f"{point.label}, {point.x:,.0f}: {point.y:,.0f}" for point in points),
    )


def _axes(points: Sequence[Point], texts: Texts) -> tuple[Axis, Axis]:
    settings = sorted({point.x for point in points})
    x = Axis(
        title=f"{texts.x}, log scale",
        low=settings[0] / ROOM,
        high=settings[-1] * ROOM,
        ticks=settings,
        base=2,
        number=",.0f",
        has_grid=False,
    )
    values = [value for point in points for value in (point.y, *point.ends)]
    low, high = min(values) / ROOM, max(values) * ROOM
    y = Axis(
        title=f"{texts.y}, log scale",
        low=low,
        high=high,
        ticks=log_ticks(low, high),
        base=10,
        wording=SHORT_NUMBER,
    )
    return x, y
