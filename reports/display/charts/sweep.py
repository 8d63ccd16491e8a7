"""Throughput against the number of environments of one rank. Pure."""

from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import CaseRow
from reports.display import html as tables
from reports.display import series_tables
from reports.display.charts.drawing import (
    RULE_DASH,
    colour,
    counts_axis,
    faded_unless,
    figure,
    fps_axis,
    inline,
    pick,
    shape,
    tip,
)
from reports.display.figure import INK, Figure
from reports.display.html import Html

SWEEP_PX: Final = 260


def environments(series: Campaign, *, is_small: bool = False) -> Figure | Html:
    """Total frames per second, one line for each library and stack. ``is_small``: half as wide as a page."""
    points = _points(series)
    if not points:
        return tables.paragraph(
            "No case of this series completed, so nothing is known of how many environments to take."
        )
    who = list(dict.fromkeys(point["who"] for point in points))
    too_many = _too_many(series)
    sizes = [point["num_envs"] for point in (*points, *too_many)]
    picked = pick("who")
    x = counts_axis("num_envs", "Environments of one rank", sizes, is_crowded=True)
    y = fps_axis([point[name] for point in points for name in ("low", "high")])
    base = alt.Chart(inline(points)).encode(x=x, color=colour(who, "who"), opacity=faded_unless(picked))
    tooltip = [
        tip("case_id:N", "Case"),
        tip("num_envs:Q", "Environments", ",d"),
        tip("fps:Q", "Frames per second", ",.0f"),
        tip("low:Q", "Slowest round", ",.0f"),
        tip("high:Q", "Fastest round", ",.0f"),
        tip("rounds:Q", "Rounds"),
    ]
    marks = base.mark_point(filled=True, size=75).encode(y=y, shape=shape(who, "who"), tooltip=tooltip)
    words = "; ".join(f"{point['who']}, {point['num_envs']}: {point['fps']:,.0f}" for point in points)
    words += "".join(f"; {point['who']}, {point['num_envs']}: out of memory" for point in too_many)
    learning = " with learning" if series.is_training else ""
    caption = f"Environment steps per second{learning}; whiskers reach over the rounds."
    if too_many:
        caption += " Dashed: no round had room in memory."
    return figure(
        [
            marks.add_params(picked),
            base.mark_line(strokeWidth=2).encode(y=y),
            base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
            *(_out_of_memory(too_many, x) if too_many else ()),
        ],
        series,
        chart="environments",
        height=SWEEP_PX,
        alt_text=f"Frames per second over environments. {words}.",
        caption="" if is_small else caption,
        data=series_tables.throughput(series.rows, series.inside),
        is_small=is_small,
    )


def _out_of_memory(too_many: list[dict[str, Any]], x: alt.X) -> tuple[alt.Chart, alt.Chart]:
    """A line where memory had no room, named at its foot: frames are many there, so points are above."""
    base = alt.Chart(inline(too_many)).encode(x=x)
    tooltip = [tip("case_id:N", "Case"), tip("num_envs:Q", "Environments", ",d"), tip("said:N", "Outcome")]
    rule: alt.Chart = base.mark_rule(color=INK, strokeDash=RULE_DASH, strokeWidth=1.5).encode(tooltip=tooltip)
    text = base.mark_text(align="right", dx=-6, color=INK, fontSize=12).encode(
        y=alt.value(SWEEP_PX - 12), text=alt.Text("said:N")
    )
    return rule, text


def _too_many(series: Campaign) -> list[dict[str, Any]]:
    """Numbers of environments of which every round ran out of memory, in their order."""
    found = [
        {"case_id": row.case_id, "who": _who(series, row), "num_envs": row.num_envs}
        for row in sorted(series.rows, key=lambda row: row.num_envs)
        if not row.rounds_completed and {failure.outcome for failure in row.failures} == {"oom"}
    ]
    several = len({row.rl_library for row in series.rows}) > 1
    return [{**one, "said": f"{one['who']}: out of memory" if several else "out of memory"} for one in found]


def _who(series: Campaign, row: CaseRow) -> str:
    return f"{row.rl_library}, {row.stack}" if len({one.stack for one in series.rows}) > 1 else row.rl_library


def _points(series: Campaign) -> list[dict[str, Any]]:
    return [
        {
            "case_id": row.case_id,
            "who": _who(series, row),
            "num_envs": row.num_envs,
            "rounds": row.rounds_completed,
            "fps": fps.median,
            "low": fps.low,
            "high": fps.high,
        }
        for row in sorted(series.rows, key=lambda row: row.num_envs)
        if (fps := series.inside[row.case_id].fps.get("total")) is not None
    ]
