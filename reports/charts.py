"""The charts of one series, from the rows of ``analysis``. Pure; the only file that writes Altair.

Colours are picked from Okabe and Ito's palette, darkened to a contrast of 3:1 on white; shapes repeat what colours say.
A chart without anything to show is a sentence that says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import altair as alt

from reports import tables
from reports.analysis import CaseRow, CurvePoint
from reports.chart_data import (
    case_label,
    case_points,
    curves_of,
    has_single_point,
    parts_of,
    powers_of_two,
    slug,
    spoken,
    sweep_rows,
    thinned,
    world_size_of,
)
from reports.figure import INK, RULE, Figure, make_figure
from reports.tables import Html

SCHEMA_URL: str = alt.SCHEMA_URL
PALETTE = ("#0072B2", "#D55E00", "#007A5A", "#AA4499", "#7A6000", "#4B5563")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
# Blues belong to collection, oranges to learning.
PART_COLOURS: Mapping[str, str] = {
    "environment steps": "#0072B2",
    "rest of collection": "#86BFE2",
    "collection": "#0072B2",
    "all-reduce": "#B94700",
    "rest of learning": "#F2A35E",
    "learning": "#F2A35E",
    "other": "#9AA1AC",
}
SHORT_NUMBER = "format(datum.value, '~s')"  # 0, 500, 1k: the axis' own format would write 0k
BARS_PX, MIN_BAR_PX, MAX_BAR_PX = 240, 6, 48  # all bars together fit a phone
EFFICIENCY_HEADROOM = 1.08
RULE_DASH = [5, 4]


def speedup(rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """Speed-up over the baseline against the number of ranks, with the ideal line."""
    shown = [row for row in rows if row.speedup is not None]
    if not shown:
        return _nothing("No case of this series completed together with its baseline, so there is no speed-up to show.")
    is_log = max(max(row.ideal_speedup or 0, row.speedup or 0) for row in shown) > 2  # noqa: PLR2004 - two ranks: from 0
    y_scale = alt.Scale(type="log", base=2, padding=14, nice=False) if is_log else alt.Scale(zero=True, nice=True)
    y_axis = alt.Axis(values=powers_of_two(shown), format="~g") if is_log else alt.Axis(tickCount=5, format="~g")

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="Speed-up", scale=y_scale, axis=y_axis)

    base = alt.Chart(_data(shown)).encode(x=_ranks_axis(shown))
    ideal = base.mark_line(color=RULE, strokeDash=RULE_DASH).encode(
        y=y("ideal_speedup"), detail="baseline_world_size:N"
    )
    end = max(shown, key=lambda row: (row.ideal_speedup or 0, row.curve))
    end_label = alt.Chart(_data([end])).mark_text(text="ideal", align="right", dx=-10, dy=-4, color=RULE, fontSize=12)
    tooltip = [_tip("speedup:Q", "Speed-up", ".2f"), _tip("scaling_efficiency:Q", "Efficiency", ".1%")]
    lines, points = _lines_and_points(base, shown, y=y("speedup"), tooltip=tooltip)
    baseline = " or ".join(dict.fromkeys(str(row.baseline_world_size) for row in shown))
    return _figure(
        alt.LayerChart(layer=[ideal, end_label.encode(x=_ranks_axis(shown), y=y("ideal_speedup")), lines, points]),
        figure_id=f"{slug(shown)}-speedup",
        height=280,
        alt_text=f"Speed-up over ranks. {spoken(shown, 'speedup', tables.ratio)}.",
        caption=f"Speed-up over the case with the fewest ranks ({baseline}); dashed: the ideal. Ran on {where}.",
        data=tables.speedups(rows),
    )


def efficiency(rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """Scaling efficiency, speed-up over ideal, against the number of ranks."""
    shown = [row for row in rows if row.scaling_efficiency is not None]
    if not shown:
        return _nothing("Without a speed-up there is no scaling efficiency either.")
    top = max(1.0, *(row.scaling_efficiency or 0 for row in shown)) * EFFICIENCY_HEADROOM
    y = alt.Y(
        "scaling_efficiency:Q",
        title="Scaling efficiency",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    base = alt.Chart(_data(shown)).encode(x=_ranks_axis(shown))
    full = alt.Chart().mark_rule(color=RULE, strokeDash=RULE_DASH).encode(y=alt.datum(1))
    lines, points = _lines_and_points(base, shown, y=y, tooltip=[_tip("scaling_efficiency:Q", "Efficiency", ".1%")])
    return _figure(
        alt.LayerChart(layer=[lines, points, full]),
        figure_id=f"{slug(shown)}-efficiency",
        height=240,
        alt_text=f"Scaling efficiency over ranks. {spoken(shown, 'scaling_efficiency', tables.percent)}.",
        caption=f"Scaling efficiency: speed-up over ideal; the dashed line is perfect scaling. Ran on {where}.",
        data=tables.speedups(rows),
    )


def throughput(rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """Environment steps per second of all ranks; whiskers from the slowest to the fastest round."""
    shown = [row for row in rows if row.total_fps is not None]
    if not shown:
        return _nothing("No case of this series completed, so there is no throughput to show.")
    curves = curves_of(shown)
    ranks = sorted({row.world_size for row in shown})
    base = alt.Chart(_data(shown)).encode(x=alt.X("world_size:O", title="Ranks", axis=alt.Axis(labelAngle=0)))
    if len(curves) > 1:
        base = base.encode(xOffset=alt.XOffset("curve:N", sort=curves))
    num_bars = len(ranks) * len(curves)
    bars = base.mark_bar(size=max(MIN_BAR_PX, min(MAX_BAR_PX, BARS_PX // num_bars))).encode(
        y=alt.Y("total_fps:Q", title="Total FPS", axis=alt.Axis(labelExpr=SHORT_NUMBER, tickCount=5)),
        color=_colour(curves),
        tooltip=[
            _tip("case_id:N", "Case"),
            _tip("total_fps:Q", "Total FPS", ",.0f"),
            _tip("iteration_time_s:Q", "Iteration time in s", ".3g"),
            _tip("rounds_completed:Q", "Rounds completed"),
        ],
    )
    whiskers = base.transform_filter("datum.rounds_completed > 1").encode(y="slowest_fps:Q", y2="fastest_fps:Q")
    has_whiskers = any(row.rounds_completed > 1 for row in shown)
    spread = (
        "whiskers reach from the slowest to the fastest round" if has_whiskers else "one round, so no spread is known"
    )
    return _figure(
        alt.LayerChart(layer=[bars, *([whiskers.mark_rule(color=INK, strokeWidth=1.5)] if has_whiskers else [])]),
        figure_id=f"{slug(shown)}-throughput",
        height=260,
        alt_text=f"Total frames per second over ranks. {spoken(shown, 'total_fps', tables.count)}.",
        caption=f"Environment steps per second of all ranks, median round; {spread}. Ran on {where}.",
        data=tables.throughput(rows),
    )


def sweep(rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """Throughput over the environments of a rank; nothing for a series that holds them constant."""
    shown = sweep_rows(rows)
    if not shown:
        return Html(markup="", text="")
    sizes = sorted({row.num_envs for row in shown})
    base = alt.Chart(_data(shown)).encode(
        x=alt.X(
            "num_envs:Q",
            title="Environments a rank",
            scale=alt.Scale(type="log", base=2, padding=36, nice=False),
            axis=alt.Axis(values=sizes, format="d", labelAngle=0, grid=False, labelOverlap=True),
        )
    )
    y = alt.Y("total_fps:Q", title="Total FPS", axis=alt.Axis(labelExpr=SHORT_NUMBER, tickCount=5))
    lines, points = _lines_and_points(base, shown, y=y, tooltip=[_tip("total_fps:Q", "Total FPS", ",.0f")])
    words = "; ".join(
        f"{curve}: "
        + ", ".join(f"{tables.count(row.total_fps)} with {row.num_envs}" for row in shown if row.curve == curve)
        for curve in curves_of(shown)
    )
    return _figure(
        alt.LayerChart(layer=[lines, points]),
        figure_id=f"{slug(shown)}-sweep",
        height=260,
        alt_text=f"Total frames per second over environments a rank. {words}.",
        caption=f"Environment steps per second on {shown[0].topology}, more environments a rank. Ran on {where}.",
        data=tables.throughput(shown),
    )


def time_split(rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """What an iteration of each case is spent on, stacked, in seconds."""
    shown = [row for row in rows if row.iteration_time_s is not None and parts_of(row)]
    if not shown:
        return _nothing("No case of this series has a measured split of its iteration time.")
    labels = {row.case_id: case_label(row, shown) for row in shown}
    data = [
        {"case_id": row.case_id, "case": labels[row.case_id], "part": part, "order": order, "share": share}
        | {"time_s": share * (row.iteration_time_s or 0)}
        for row in shown
        for order, (part, share) in enumerate(parts_of(row).items())
    ]
    present = [part for part in PART_COLOURS if any(point["part"] == part for point in data)]
    colour = alt.Color(
        "part:N",
        title=None,
        sort=present,
        scale=alt.Scale(domain=present, range=[PART_COLOURS[part] for part in present]),
        legend=alt.Legend(columns=2, symbolType="square"),
    )
    chart = (
        alt.Chart(alt.InlineData(values=data))
        .mark_bar(size=18, stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("time_s:Q", title="Iteration time in s", axis=alt.Axis(tickCount=5, format="~g")),
            y=alt.Y("case:N", sort=list(labels.values()), title=None, axis=alt.Axis(labelLimit=180, ticks=False)),
            color=colour,
            order="order:Q",
            tooltip=[
                _tip("case_id:N", "Case"),
                _tip("part:N", "Part"),
                _tip("time_s:Q", "Time in s", ".3g"),
                _tip("share:Q", "Share", ".1%"),
            ],
        )
    )
    words = "; ".join(
        f"{labels[row.case_id]}: "
        + ", ".join(f"{part} {tables.percent(share)}" for part, share in parts_of(row).items())
        for row in shown
    )
    return _figure(
        chart,
        figure_id=f"{slug(shown)}-time-split",
        height=28 * len(shown),
        alt_text=f"Shares of the iteration time. {words}.",
        caption="What an iteration is spent on, mean over ranks. All-reduce includes waiting for the slowest rank."
        f" Ran on {where}.",
        data=tables.time_split(rows),
    )


def learning(points: Sequence[CurvePoint], rows: Sequence[CaseRow], *, where: str) -> Figure | Html:
    """Reward over iterations: whether the cases that are compared learn alike."""
    if not points:
        return _nothing("No rank of this series reported a reward: training was too short for an episode to end.")
    curves = list(dict.fromkeys(point.curve for point in points))
    topologies = list(
        dict.fromkeys(point.topology for point in sorted(points, key=lambda point: world_size_of(point.topology)))
    )
    base = alt.Chart(alt.InlineData(values=[asdict(point) for point in thinned(points)]))
    chart = base.mark_line(strokeWidth=1.8, point=has_single_point(points)).encode(
        x=alt.X("iteration:Q", title="Iteration", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("reward:Q", title="Mean return", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        color=alt.Color("topology:N", title=None, sort=topologies, scale=alt.Scale(domain=topologies, range=PALETTE)),
        detail="case_id:N",
        tooltip=[_tip("case_id:N", "Case"), _tip("iteration:Q", "Iteration"), _tip("reward:Q", "Mean return", ".3g")],
    )
    if len(curves) > 1:
        chart = chart.encode(strokeDash=alt.StrokeDash("curve:N", title=None, sort=curves))
    last = {point.case_id: point for point in points}
    words = "; ".join(f"{point.curve}, {point.topology}: {point.reward:.3g}" for point in last.values())
    return _figure(
        chart,
        figure_id=f"{slug(rows)}-learning",
        height=240,
        alt_text=f"Mean return of finished episodes over iterations. At the end: {words}.",
        caption="Mean return of finished episodes over iterations, colour by nodes x ranks per node."
        f" A case's curve is the median over rounds. Ran on {where}.",
        data=_learning_table(last.values()),
    )


# --- pieces ------------------------------------------------------------------------------------------------------


def _lines_and_points(
    base: alt.Chart, rows: Sequence[CaseRow], *, y: alt.Y, tooltip: list[alt.Tooltip]
) -> tuple[alt.Chart, alt.Chart]:
    curves = curves_of(rows)
    shape = alt.Shape("curve:N", title=None, sort=curves, scale=alt.Scale(domain=curves, range=SHAPES))
    coloured = base.encode(y=y, color=_colour(curves))
    points = coloured.mark_point(filled=True, size=75, opacity=1).encode(
        shape=shape, tooltip=[_tip("case_id:N", "Case"), *tooltip]
    )
    return coloured.mark_line(strokeWidth=2), points


def _colour(curves: Sequence[str]) -> alt.Color:
    scale = alt.Scale(domain=curves, range=PALETTE)
    return alt.Color("curve:N", title=None, sort=curves, scale=scale, legend=alt.Legend(columns=2))


def _ranks_axis(rows: Sequence[CaseRow]) -> alt.X:
    ranks = sorted({row.world_size for row in rows})
    return alt.X(
        "world_size:Q",
        title="Ranks",
        scale=alt.Scale(type="log", base=2, padding=36, nice=False),
        axis=alt.Axis(values=ranks, format="d", grid=False),
    )


def _learning_table(last: Iterable[CurvePoint]) -> Html:
    return tables.html_table(
        ["Case", "Last iteration", "Mean return"],
        ([point.case_id, str(point.iteration), f"{point.reward:.3g}"] for point in last),
        label="Mean return at the end",
    )


def _nothing(text: str) -> Html:
    return tables.paragraph(text)


def _tip(field: str, title: str, number_format: str | None = None) -> alt.Tooltip:
    return (
        alt.Tooltip(field, title=title)
        if number_format is None
        else alt.Tooltip(field, title=title, format=number_format)
    )


def _figure(
    chart: alt.Chart | alt.LayerChart, *, figure_id: str, height: int, alt_text: str, caption: str, data: Html
) -> Figure:
    spec = chart.properties(width="container", height=height, description=alt_text).to_dict()
    return make_figure(spec, figure_id=figure_id, alt_text=alt_text, caption=caption, data=data)


def _data(rows: Iterable[CaseRow]) -> alt.InlineData:
    return alt.InlineData(values=case_points(rows))
