"""Reward over iterations: whether the cases that are compared learn alike. Pure."""

from typing import Final

import altair as alt

from reports import series_tables, tables
from reports.campaign import Campaign
from reports.charts.drawing import PALETTE, colour, faded_unless, figure, legend_of, pick, tip
from reports.charts.points import has_single_point, thinned, world_size_of
from reports.figure import Figure
from reports.tables import Html

LEARNING_PX: Final = 240


def learning(series: Campaign) -> Figure | Html:
    """Mean return of finished episodes over iterations, one line a case."""
    points = series.learning_curves
    if not points:
        return tables.paragraph(
            "No rank of this series reported a reward: training was too short for an episode to end."
        )
    curves = list(dict.fromkeys(point.curve for point in points))
    topologies = list(
        dict.fromkeys(point.topology for point in sorted(points, key=lambda point: world_size_of(point.topology)))
    )
    picked = pick("topology")
    drawn = [
        {
            "curve": point.curve,
            "topology": point.topology,
            "iteration": point.iteration,
            "reward": float(f"{point.reward:.4g}"),
        }
        for point in thinned(points)
    ]
    line = (
        alt.Chart(alt.InlineData(values=drawn))
        .mark_line(strokeWidth=1.8, point=has_single_point(points))
        .encode(
            x=alt.X(
                "iteration:Q",
                title="Iteration",
                axis=alt.Axis(tickMinStep=1, tickCount=8, format="d", labelOverlap="greedy", labelSeparation=6),
            ),
            y=alt.Y("reward:Q", title="Mean return", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
            color=colour(topologies, "topology", PALETTE),
            opacity=faded_unless(picked),
            detail="curve:N",
            tooltip=[
                tip("curve:N", "Curve"),
                tip("topology:N", "Topology"),
                tip("iteration:Q", "Iteration"),
                tip("reward:Q", "Mean return", ".3g"),
            ],
        )
    )
    if len(curves) > 1:
        line = line.encode(strokeDash=alt.StrokeDash("curve:N", title=None, sort=curves, legend=legend_of(curves)))
    last = {point.case_id: point for point in points}
    words = "; ".join(f"{point.curve}, {point.topology}: {point.reward:.3g}" for point in last.values())
    return figure(
        [line.add_params(picked)],
        series,
        chart="learning",
        height=LEARNING_PX,
        alt_text=f"Mean return of finished episodes over iterations. At the end: {words}.",
        caption="Mean return of finished episodes over iterations, colour by nodes x ranks per node."
        " A case's curve is the median over rounds. The axis need not start at zero.",
        data=series_tables.final_rewards(list(last.values())),
    )
