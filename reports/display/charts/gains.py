"""What each tuned case gains, in frames a second and in time to a reward. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.divisions import Gain
from reports.display import division_tables
from reports.display.charts.drawing import (
    CASE_LABEL_LIMIT,
    PALETTE,
    RULE_DASH,
    colour,
    faded_unless,
    figure,
    inline,
    log_ticks,
    pick,
    shape,
    tip,
)
from reports.display.figure import RULE, Figure
from suite.statistics.intervals import Estimate

ROW_PX: Final = 30
FPS, SOONER = "Frames per second", "Time to the reward as shipped"


def gains(series: Campaign, found: Sequence[Gain], *, is_small: bool = False) -> Figure:
    """``found``: of one case as shipped, one of them measured at least. ``is_small``: half as wide as a page."""
    labels = {gain.case.case_id: division_tables.short_name(gain, found) for gain in found}
    points = [
        point
        for gain in found
        for kind, value in ((FPS, gain.gain), (SOONER, gain.sooner))
        if (point := _point(labels[gain.case.case_id], gain, kind, value)) is not None
    ]
    values = [point[name] for point in points for name in ("low", "high")]
    ticks = log_ticks(min([*values, 1.0]), max([*values, 1.0]))
    picked = pick("kind")
    x = alt.X(
        "value:Q",
        title="Times as shipped, log scale",  # a phone has no room for more
        scale=alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False),
        axis=alt.Axis(values=ticks, format="~g", labelOverlap="greedy"),
    )
    axis = alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False, grid=True, domain=False)
    y = alt.Y("change:N", sort=list(labels.values()), title=None, axis=axis)
    kinds = [kind for kind in (FPS, SOONER) if any(point["kind"] == kind for point in points)]
    beside = alt.YOffset("kind:N", sort=kinds)  # equal gains would hide each other
    base = alt.Chart(inline(points)).encode(
        y=y, yOffset=beside, color=colour(kinds, "kind", PALETTE), opacity=faded_unless(picked)
    )
    tooltip = [
        tip("case_id:N", "Case"),
        tip("kind:N", "What"),
        tip("value:Q", "Times as good", ".3g"),
        tip("low:Q", "Interval from", ".3g"),
        tip("high:Q", "to", ".3g"),
        tip("rounds:Q", "Rounds"),
    ]
    marks = base.mark_point(filled=True, size=80).encode(x=x, shape=shape(kinds, "kind"), tooltip=tooltip)
    return figure(
        [
            _line_at_one(),
            marks.add_params(picked),
            base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")),
        ],
        series,
        chart=f"gains-{found[0].closed.case_id.rpartition('/')[2]}",
        height=ROW_PX * len(found),
        alt_text=_in_words(points),
        caption="" if is_small else _caption(found),
        data=division_tables.throughput(found),
        is_small=is_small,
    )


def _point(label: str, gain: Gain, kind: str, value: Estimate | None) -> dict[str, Any] | None:
    if value is None:
        return None
    low, high = value.interval or (value.value, value.value)
    point: dict[str, Any] = {"change": label, "case_id": gain.case.case_id, "kind": kind, "value": value.value}
    return point | {"low": low, "high": high, "rounds": gain.rounds}


def _line_at_one() -> alt.Chart:
    shown = alt.Chart(inline([{}]))
    line: alt.Chart = shown.mark_rule(color=RULE, strokeDash=RULE_DASH, strokeWidth=1.5).encode(x=alt.XDatum(1))
    return line


def _in_words(points: Sequence[dict[str, Any]]) -> str:
    words = "; ".join(f"{point['change']}, {point['kind'].lower()}: {point['value']:.2f}" for point in points)
    return f"Gain of each change on the settings as shipped. {words}."


def _caption(found: Sequence[Gain]) -> str:
    closed = found[0].closed.case_id
    parts = [f"Each change compared with {closed}, which is 1. Whiskers: intervals, where rounds are enough."]
    late = [one for one in found if one.ended_before]
    if late:
        named = ", ".join(f"{division_tables.short_name(one, found)} ({one.runs_with_target})" for one in late)
        parts.append(f"Not every run had the reward as shipped in its iterations: {named}.")
    return " ".join(parts)
