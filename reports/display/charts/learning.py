"""Reward over iterations: whether the cases that are compared learn alike. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.learning_curves import CurvePoint
from reports.display import html as tables
from reports.display import series_tables
from reports.display.charts.drawing import PALETTE, colour, faded_unless, figure, inline, legend_of, pick, tip
from reports.display.charts.points import has_single_point, thinned, world_size_of
from reports.display.figure import Figure
from reports.display.html import Html

LEARNING_PX: Final = 240


# From dark to light as environments grow, each 3:1 on white.
_BY_SIZE: Final = ("#440154", "#443A83", "#31688E", "#1F8280", "#2A8A5C", "#5B7F1F", "#8A6D00")


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What tells lines apart: colour and, where that is not enough, dashes."""

    field: str  # of the colour
    colours: alt.Color
    dash_field: str
    dashes: Sequence[str]
    in_words: str


def learning(series: Campaign) -> Figure | Html:
    """Mean return of finished episodes over iterations, one line a case."""
    points = series.learning_curves
    if not points:
        return tables.paragraph(
            "No rank of this series reported a reward: training was too short for an episode to end."
        )
    if series.varies_settings:
        points, told = _by_change(points)
    else:
        told = _by_environments(series) if series.is_sweep else _by_topology(points)
    picked = pick(told.field)
    last = {point.case_id: point for point in points}
    words = "; ".join(f"{point.curve}, {point.topology}: {point.reward:.3g}" for point in last.values())
    return figure(
        [_lines(series, points, told).encode(opacity=faded_unless(picked)).add_params(picked)],
        series,
        chart="learning",
        height=LEARNING_PX,
        alt_text=f"Mean return of finished episodes over iterations. At the end: {words}.",
        caption=f"Mean return of finished episodes over iterations, colour by {told.in_words}."
        " A case's curve is the median over rounds. The axis need not start at zero.",
        data=series_tables.final_rewards(list(last.values())),
    )


def _lines(series: Campaign, points: Sequence[CurvePoint], told: _Told) -> alt.Chart:
    lines: alt.Chart = (
        alt.Chart(inline(_drawn(series, points)))
        .mark_line(strokeWidth=1.8, point=has_single_point(points))
        .encode(
            x=alt.X(
                "iteration:Q",
                title="Iteration",
                axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", labelOverlap="greedy", labelSeparation=6),
            ),
            y=alt.Y("reward:Q", title="Mean return", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
            color=told.colours,
            detail=alt.Detail("curve:N"),
            tooltip=[
                tip("curve:N", "Curve"),
                tip("topology:N", "Topology"),
                tip("iteration:Q", "Iteration"),
                tip("reward:Q", "Mean return", ".3g"),
            ],
        )
    )
    if len(told.dashes) > 1:
        sort, legend = list(told.dashes), legend_of(told.dashes)
        lines = lines.encode(strokeDash=alt.StrokeDash(f"{told.dash_field}:N", title=None, sort=sort, legend=legend))
    return lines


def _by_topology(points: Sequence[CurvePoint]) -> _Told:
    ordered = sorted(points, key=lambda point: world_size_of(point.topology))
    topologies = list(dict.fromkeys(point.topology for point in ordered))
    return _Told(
        field="topology",
        colours=colour(topologies, "topology", PALETTE),
        dash_field="curve",
        dashes=list(dict.fromkeys(point.curve for point in points)),
        in_words="nodes x ranks per node",
    )


def _by_change(points: Sequence[CurvePoint]) -> tuple[tuple[CurvePoint, ...], _Told]:
    """Most changes of speed leave learning as it is, bit for bit: one line for all that learn the same."""
    rewards: dict[str, dict[int, float]] = {}
    for point in points:
        rewards.setdefault(point.case_id, {})[point.iteration] = point.reward
    alike: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for case_id, of_case in rewards.items():
        alike.setdefault(tuple(sorted(of_case.items())), []).append(case_id)
    curves = {point.case_id: point.curve for point in points}
    names = {
        group[0]: curves[group[0]] + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        for group in (sorted(group, key=lambda case_id: (len(case_id), case_id)) for group in alike.values())
    }
    kept = tuple(replace(point, curve=names[point.case_id]) for point in points if point.case_id in names)
    told = _Told(
        field="curve",
        colours=colour(list(names.values()), "curve", PALETTE),
        dash_field="topology",
        dashes=list(dict.fromkeys(point.topology for point in kept)),
        in_words="case; cases that learn the same, bit for bit, are one line",
    )
    return kept, told


def _by_environments(series: Campaign) -> _Told:
    """In a sweep every line is a curve of its own, more than dashes could tell apart."""
    sizes = [f"{size:,}" for size in sorted({row.num_envs for row in series.rows})]
    return _Told(
        field="size",
        colours=colour(sizes, "size", _BY_SIZE),
        dash_field="library",
        dashes=list(dict.fromkeys(row.rl_library for row in series.rows)),
        in_words="environments of a rank",
    )


def _drawn(series: Campaign, points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    rows = {row.case_id: row for row in series.rows} if series.is_sweep else {}
    return [
        {
            "curve": point.curve,
            "topology": point.topology,
            "iteration": point.iteration,
            "reward": float(f"{point.reward:.4g}"),
        }
        | ({"size": f"{row.num_envs:,}", "library": row.rl_library} if (row := rows.get(point.case_id)) else {})
        for point in thinned(points)
    ]
