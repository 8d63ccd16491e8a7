"""What charts of speed-ups share: the axis, bars of intervals, and points, filled where they are sure. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.scaling.lines import Point
from reports.display.charts.drawing import inline
from reports.display.html import estimated, rounds_text
from suite.statistics.intervals import Estimate

HEADROOM: Final = 1.08
OF_AN_INTERVAL: Final = 0.25  # opacity

type Values = Mapping[str, Any]  # of a point


def values_of(point: Point) -> dict[str, Any]:
    """The fields that ``intervals`` and ``points`` read, and what a tooltip says."""
    values: dict[str, Any] = {
        "speedup": point.speedup.value,
        "said": estimated(point.speedup),
        "runs": rounds_text([point.runs]),
        "is_sure": point.speedup.interval is not None,
    }
    if point.speedup.interval:
        values["low"], values["high"] = point.speedup.interval
    return values


def axis_range(speedups: Iterable[Estimate], *, gpus: Iterable[int] = (1,)) -> tuple[float, float]:
    """Least and largest speed-up or bound of an interval, with one and the ideal of ``gpus``, and room around them."""
    values = [value for each in speedups for value in (each.value, *(each.interval or ()))]
    return min(1.0, *values) / HEADROOM, float(max(1.0, *values, *gpus)) * HEADROOM


def speedup_axis(low_high: tuple[float, float]) -> alt.Y:
    """Doublings are as far apart as those of GPUs are, so the ideal is a straight line."""
    low, high = low_high
    ticks = [2.0**power for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]
    return alt.Y(
        "speedup:Q",
        title="Speed-up over one GPU, log scale",
        axis=alt.Axis(labelExpr="datum.label + '\\u00d7'", format="~g", titlePadding=14, values=ticks),
        scale=alt.Scale(type="log", base=2, domain=[low, high], nice=False),
    )


def intervals(base: alt.Chart, found: Sequence[Values], y: alt.Y, *, width_px: int) -> list[alt.Chart]:
    """Bars from the lowest to the highest of each interval; no layer without one."""
    known = [values for values in found if "low" in values]
    if not known:
        return []
    low = y.copy()
    low.shorthand = "low:Q"
    return [
        _with(base, known).mark_rule(strokeWidth=width_px, opacity=OF_AN_INTERVAL).encode(y=low, y2=alt.Y2("high:Q"))
    ]


def points(base: alt.Chart, found: Sequence[Values], *, size: int, **channels: Any) -> list[alt.Chart]:
    """A layer of filled points that are sure, and one of hollow points; none of them is empty."""
    kinds: tuple[tuple[bool, Values], ...] = (
        (True, {"filled": True, "size": size, "opacity": 1}),
        (False, {"fill": "#ffffff", "size": size - 10, "strokeWidth": 2}),
    )
    shown = ((mark, [values for values in found if values["is_sure"] == is_sure]) for is_sure, mark in kinds)
    return [_with(base, these).mark_point(**mark).encode(**channels) for mark, these in shown if these]


def _with(base: alt.Chart, found: Sequence[Values]) -> alt.Chart:
    """``base`` with other points. A filter that leaves none would make Vega warn."""
    chart: alt.Chart = base.properties(data=inline(found))
    return chart
