"""Speed-up, efficiency and throughput of one series. Pure."""

import math
from collections.abc import Sequence
from typing import Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import KIND_COLUMNS
from reports.display import html as tables
from reports.display import series_tables
from reports.display.charts.drawing import (
    DASHES,
    PALETTE,
    RULE_DASH,
    SHAPES,
    colour,
    curve_colours,
    dashed_line_at,
    efficiency_axis,
    end_labels,
    faded_unless,
    figure,
    fps_axis,
    ideal_line,
    inline,
    intervals,
    last_rows,
    legend_of,
    lines_and_points,
    named,
    pick,
    ranks_axis,
    rows_data,
    tip,
)
from reports.display.charts.points import curves_of, of_scaling, powers_of_two, spoken, throughput_points
from reports.display.figure import RULE, Figure
from reports.display.html import Html
from suite.statistics.intervals import CONFIDENCE

SPEEDUP_PX: Final = 260
EFFICIENCY_PX: Final = 220
THROUGHPUT_PX: Final = 280
SCALE_PADDING_PX: Final = 14
EFFICIENCY_HEADROOM: Final = 1.08
THROUGHPUT: Final = (
    "Environment steps per second of all ranks. Step counts the time of the environment steps, step and"
    " inference the whole rollout, total the iteration with learning."
)


def speedup(series: Campaign) -> Figure | Html:
    """Speed-up over the baseline against the number of ranks, with its interval and the ideal line."""
    shown = of_scaling([row for row in series.rows if row.speedup is not None])
    if not shown:
        return tables.paragraph(
            "No case of this series completed together with its baseline, so there is no speed-up to show."
        )
    powers = _speedup_powers(shown)
    y = alt.Y(
        "speedup:Q",
        title="Speed-up, log scale",
        scale=alt.Scale(type="log", base=2, domain=[powers[0], powers[-1]], nice=False, padding=SCALE_PADDING_PX),
        axis=alt.Axis(values=powers, format="~g"),
    )
    picked, x = pick("curve"), ranks_axis(shown)
    base = alt.Chart(rows_data(shown)).encode(x=x)
    tooltip = [
        tip("world_size:Q", "Ranks"),
        tip("speedup:Q", "Speed-up", ".2f"),
        tip("speedup_low:Q", "Interval from", ".2f"),
        tip("speedup_high:Q", "to", ".2f"),
        tip("ideal_speedup:Q", "Ideal", ".0f"),
    ]
    last = last_rows(shown)
    labels = end_labels(
        {curve: (row.world_size, tables.ratio(row.speedup)) for curve, row in last.items()},
        to_px={curve: _log_px(row.speedup or 1, powers, SPEEDUP_PX) for curve, row in last.items()},
        colours=curve_colours(shown),
        x=x,
    )
    end = max(shown, key=lambda row: (row.ideal_speedup or 0, row.curve))
    ideal_end = alt.Chart(rows_data([end])).mark_text(text="ideal", align="right", dx=-8, dy=-8, color=RULE)
    baseline = " or ".join(dict.fromkeys(str(row.baseline_world_size) for row in shown))
    return figure(
        [
            ideal_line(base, y.copy(), alt.Detail("baseline_world_size:N")).encode(y=_like(y, "ideal_speedup")),
            ideal_end.encode(x=x, y=_like(y, "ideal_speedup")),
            *lines_and_points(base, shown, y=y, tooltip=tooltip, picked=picked),
            *intervals(shown, x=x, low="speedup_low", high="speedup_high", picked=picked),
            *labels,
        ],
        series,
        chart="speedup",
        height=SPEEDUP_PX,
        alt_text=f"Speed-up over ranks. {spoken(shown, 'speedup', tables.ratio)}.",
        caption=f"Speed-up over the case with the fewest ranks ({baseline}). Dashed: ideal. {_whiskers(shown)}",
        data=series_tables.speedups(series.rows),
        is_labelled=True,
    )


def efficiency(series: Campaign, *, is_small: bool = False) -> Figure | Html:
    """Scaling efficiency, speed-up over ideal, against the number of ranks. ``is_small``: half as wide as a page."""
    shown = of_scaling([row for row in series.rows if row.scaling_efficiency is not None])
    if not shown:
        return tables.paragraph("Without a speed-up there is no scaling efficiency either.")
    highest = [row.scaling_efficiency_interval[1] for row in shown if row.scaling_efficiency_interval]
    top = max(1.0, *(row.scaling_efficiency or 0 for row in shown), *highest) * EFFICIENCY_HEADROOM
    y = efficiency_axis("scaling_efficiency", top=top)
    picked, x = pick("curve"), ranks_axis(shown)
    base = alt.Chart(rows_data(shown)).encode(x=x)
    tooltip = [
        tip("world_size:Q", "Ranks"),
        tip("scaling_efficiency:Q", "Efficiency", ".1%"),
        tip("efficiency_low:Q", "Interval from", ".1%"),
        tip("efficiency_high:Q", "to", ".1%"),
        tip("rounds_completed:Q", "Rounds"),
    ]
    last = last_rows(shown)
    labels = end_labels(
        {curve: (row.world_size, f"{row.scaling_efficiency:.0%}") for curve, row in last.items()},
        to_px={curve: EFFICIENCY_PX * (1 - (row.scaling_efficiency or 0) / top) for curve, row in last.items()},
        colours=curve_colours(shown),
        x=x,
    )
    return figure(
        [
            dashed_line_at(1),
            *lines_and_points(base, shown, y=y, tooltip=tooltip, picked=picked),
            *intervals(shown, x=x, low="efficiency_low", high="efficiency_high", picked=picked),
            *labels,
        ],
        series,
        chart="efficiency",
        is_small=is_small,
        height=EFFICIENCY_PX,
        alt_text=f"Scaling efficiency over ranks. {spoken(shown, 'scaling_efficiency', tables.percent)}.",
        caption="" if is_small else f"Scaling efficiency: speed-up over ideal. Dashed: perfect. {_whiskers(shown)}",
        data=series_tables.speedups(series.rows),
        is_labelled=True,
    )


def throughput(series: Campaign) -> Figure | Html:
    """Environment steps per second of all ranks: of the steps alone, with inference, and with learning.

    A table if all ran on one number of ranks: nothing varies along the axis.
    """
    points = throughput_points(series)
    if not points and any(row.rounds_completed for row in series.rows):
        return tables.paragraph("This series takes no environment steps, so it has no throughput.")
    if not points:
        return tables.paragraph("No case of this series completed, so there is no throughput to show.")
    shown = [row for row in series.rows if row.case_id in {point["case_id"] for point in points}]
    data = series_tables.throughput(series.rows, series.inside)
    if len({row.world_size for row in shown}) == 1:
        return tables.together([tables.paragraph(THROUGHPUT), tables.named_of(data, named(series))])
    curves, kinds = curves_of(shown), list(KIND_COLUMNS)
    picked, x = pick("curve" if len(curves) > 1 else "kind"), ranks_axis(shown)
    y = fps_axis([point[name] for point in points for name in ("low", "high", "ideal")])
    base = alt.Chart(inline(points)).encode(x=x, opacity=faded_unless(picked), detail=alt.Detail("curve:N"))
    coloured, shapes, dashes = _told_apart(curves, kinds)
    tooltip = [
        tip("case_id:N", "Case"),
        tip("kind:N", "Counted over"),
        tip("fps:Q", "Frames per second", ",.0f"),
        tip("low:Q", "Slowest round", ",.0f"),
        tip("high:Q", "Fastest round", ",.0f"),
        tip("rounds_completed:Q", "Rounds"),
    ]
    lines = base.encode(y=y, color=coloured)
    ideal = base.mark_line(color=RULE, strokeDash=RULE_DASH, strokeWidth=1).encode(
        y=_like(y, "ideal"), detail=[alt.Detail("curve:N"), alt.Detail("kind:N")]
    )
    return figure(
        [
            ideal,
            lines.mark_point(filled=True, size=70).encode(shape=shapes, tooltip=tooltip).add_params(picked),
            lines.mark_line(strokeWidth=2).encode(strokeDash=dashes),
            lines.mark_rule(strokeWidth=2).encode(y=_like(y, "low"), y2=alt.Y2("high:Q")),
        ],
        series,
        chart="throughput",
        height=THROUGHPUT_PX,
        alt_text=f"Total frames per second over ranks. {spoken(shown, 'total_fps', tables.count)}.",
        caption=f"{THROUGHPUT} Whiskers reach from the slowest to the fastest round. Thin dashed lines: ideal scaling"
        " from the fewest ranks.",
        data=data,
    )


def _told_apart(curves: Sequence[str], kinds: Sequence[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """With one curve colours tell the kinds apart; with more they tell the curves, and dashes and shapes the kinds."""
    coloured = colour(curves) if len(curves) > 1 else colour(kinds, "kind", PALETTE)
    # Two legends side by side are wider than a phone.
    below = alt.Legend(orient="bottom", columns=2) if len(curves) > 1 else legend_of(kinds)
    shapes = alt.Scale(domain=kinds, range=SHAPES[: len(kinds)])
    dashes = alt.Scale(domain=kinds, range=list(DASHES))
    return (
        coloured,
        alt.Shape("kind:N", title=None, sort=kinds, scale=shapes, legend=below),
        alt.StrokeDash("kind:N", title=None, sort=kinds, scale=dashes, legend=below),
    )


def _speedup_powers(rows: Sequence[CaseRow]) -> list[float]:
    """Ticks that hold every speed-up, its interval and the ideal; at least one doubling."""
    values = [value for row in rows if row.speedup_interval for value in row.speedup_interval]
    powers = powers_of_two(rows, values)
    return powers if len(powers) > 1 else [*powers, 2 * powers[-1]]


def _log_px(value: float, powers: Sequence[float], height: int) -> float:
    """Pixels from the top of a log scale that is padded on both ends."""
    low, high = math.log2(powers[0]), math.log2(powers[-1])
    inner = height - 2 * SCALE_PADDING_PX
    return SCALE_PADDING_PX + inner * (high - math.log2(value)) / (high - low)


def _like(y: alt.Y, field: str) -> alt.Y:
    """The same axis and scale for another field."""
    same = y.copy()
    same.shorthand = f"{field}:Q"
    return same


def _whiskers(rows: Sequence[CaseRow]) -> str:
    if any(row.speedup_interval for row in rows):
        return f"Whiskers: {CONFIDENCE:.0%} interval over rounds, where there are enough."
    return "No interval is known: too few runs."
