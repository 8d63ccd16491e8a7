"""The form ``speedup``: a speed-up, or the share of the ideal one that is kept, over the number of GPUs. Pure."""

import math
from collections.abc import Collection, Sequence
from typing import Final

import altair as alt

from reports.display.charts import drawing
from reports.display.charts.drawing import FONT_PX, TIMES, Axis, Point, Spec, Texts, inline, layered, log_ticks
from reports.display.figure import RULE

HEIGHT_PX: Final = 240
ROOM: Final = 1.1  # beyond the least and the most of an axis
PREDICTED: Final = "predicted"  # kind of a point that was not measured


def speedup(
    points: Sequence[Point], texts: Texts, *, baselines: Collection[int] = (1,), is_share: bool = False
) -> Spec:
    """Draw a line for each label. ``baselines``: the numbers of GPUs that are 1, each with an ideal line of its own."""
    counts = sorted({int(point.x) for point in points})
    x = Axis(
        title=f"{texts.x}, log scale",
        low=counts[0] / ROOM,
        high=counts[-1] * ROOM,
        ticks=counts,
        base=2,
        number="d",
        has_grid=False,
    )
    ideal = [(baseline, count, 1 if is_share else count / baseline) for baseline in baselines for count in counts]
    ideal = [pair for pair in ideal if pair[1] >= pair[0]]
    y = _axis(points, texts, [value for _, _, value in ideal], is_share=is_share)
    value = "{:.0%}" if is_share else "{:.2f}\u00d7"
    ends = drawing.ends_of(points)
    labels = drawing.label_lines(
        {label: f"{value.format(end.y)} at {end.x:.0f} {end.kind}".rstrip() for label, end in ends.items()}
    )
    height = drawing.height_for(labels, HEIGHT_PX)
    across, up = x.encoding(alt.X, "x"), y.encoding(alt.Y, "y")
    tips = {texts.x: "d", texts.y: ".1%" if is_share else ".2f"}
    description = "; ".join(
        f"{label}: "
        + ", ".join(f"{value.format(point.y)} on {point.x:.0f}" for point in points if point.label == label)
        for label in labels
    )
    return layered(
        [
            *_ideal(ideal, across, up),
            drawing.lines([point for point in points if point.kind != PREDICTED], across, up),
            *_predicted(points, across, up),
            *drawing.line_whiskers(points, across),
            *drawing.end_labels(points, labels, y, height),
            *drawing.dots(points, across, up, tips),
        ],
        texts,
        points,
        height=height,
        room_px=drawing.room_of(labels),
        description=description,
    )


def _predicted(points: Sequence[Point], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A dashed line from the last measured point of each label through those that are predicted."""
    last = {point.label: point for point in points if point.kind != PREDICTED}
    begun = {point.label for point in points if point.kind == PREDICTED}
    drawn = [
        point for point in points if point.label in begun and (point.kind == PREDICTED or point is last[point.label])
    ]
    values = inline({"label": point.label, "x": point.x, "y": point.y} for point in drawn)
    line = alt.Chart(values).mark_line(strokeWidth=2, strokeDash=[3, 4])
    return [line.encode(x=x, y=y, color=drawing.colours(points), detail="label:N")] if drawn else []


def _axis(points: Sequence[Point], texts: Texts, ideal: Sequence[float], *, is_share: bool) -> Axis:
    """Doublings are as far apart as those of GPUs are, so the ideal is straight."""
    values = [*ideal, *(value for point in points for value in (point.y, *point.ends))]
    low, high = min(values) / ROOM, max(values) * ROOM
    if is_share:
        low = min(low, 0.45)
        return Axis(title=f"{texts.y}, log scale", low=low, high=high, ticks=log_ticks(low, high), base=2, number=".0%")
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    return Axis(
        title=f"{texts.y}, log scale",
        low=low,
        high=high,
        ticks=[2.0**power for power in powers],
        base=2,
        number="~g",
        wording=TIMES,
    )


def _ideal(ideal: Sequence[tuple[int, int, float]], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A thin line for each baseline, with its name."""
    ends = [{"baseline": baseline, "x": count, "y": value} for baseline, count, value in ideal]
    line = alt.Chart(inline(ends)).mark_line(color=RULE, strokeWidth=1).encode(x=x, y=y, detail="baseline:N")
    name = alt.Chart(inline(ends[-1:])).mark_text(
        text="ideal", align="right", dx=-12, dy=-8, color=RULE, fontSize=FONT_PX
    )
    return [line, name.encode(x=x, y=y)]
