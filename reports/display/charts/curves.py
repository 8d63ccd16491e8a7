"""The form ``curves``: reward over iterations, frames or time, a line each. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.display.charts import drawing
from reports.display.charts.drawing import Axis, Point, Spec, Texts, layered

HEIGHT_PX: Final = 230


def curves(points: Sequence[Point], texts: Texts) -> Spec:
    """Draw a line for each label."""
    x = Axis(title=texts.x, low=min(point.x for point in points), high=max(point.x for point in points), has_grid=False)
    values = [point.y for point in points]
    room = 0.03 * (max(values) - min(values) or 1)
    y = Axis(title=texts.y, low=min(values) - room, high=max(values) + room)
    ends = drawing.ends_of(points)
    labels = drawing.label_lines({label: f"{end.y:.3g} at {end.x:.3g}" for label, end in ends.items()})
    height = drawing.height_for(labels, HEIGHT_PX)
    across, up = x.encoding(alt.X, "x"), y.encoding(alt.Y, "y")
    tooltip: list[Any] = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("x:Q", title=texts.x),
        alt.Tooltip("y:Q", title=texts.y, format=".3g"),
    ]
    # A line alone would not show a curve of one point.
    has_single_point = 1 in Counter(point.label for point in points).values()
    return layered(
        [
            drawing.lines(points, across, up)
            .mark_line(strokeWidth=1.8, point=has_single_point)
            .encode(tooltip=tooltip),
            *drawing.end_labels(points, labels, y, height),
        ],
        texts,
        points,
        height=height,
        room_px=drawing.room_of(labels),
        description=f"At the end: {'; '.join(f'{label}: {end.y:.3g}' for label, end in ends.items())}",
    )
