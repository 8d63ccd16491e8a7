"""Reward over iterations of every seed, with the rewards that every sound run has. Pure."""

from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.seeds import Seeds
from reports.display.charts.drawing import PALETTE, figure, inline, tip
from reports.display.charts.points import stride_of
from reports.display.figure import Figure
from reports.display.html import Html

HEIGHT_PX: Final = 240
_DIGITS: Final = 4


def curves(campaign: Campaign, found: Seeds, *, data: Html) -> Figure:
    """``campaign``: of one of the seeds, for where it ran."""
    drawn = [point for seed in found.curves for point in points(found, seed)]
    base = alt.Chart(inline(drawn))
    x = alt.X("iteration:Q", title="Iteration", axis=alt.Axis(tickMinStep=1, tickCount=8, format="d"))
    y = alt.Y("reward:Q", title="Mean return", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    tooltip = [
        tip("seed:N", "Seed"),
        tip("iteration:Q", "Iteration"),
        tip("reward:Q", "Mean return", ".3g"),
    ]
    line = base.mark_line(strokeWidth=1.4, color=PALETTE[0], opacity=0.7).encode(
        x=x, y=y, detail=alt.Detail("seed:N"), tooltip=tooltip
    )
    least = [
        {"iteration": one.reference.iterations - 1, "reward": one.reference.reward_at_least} for one in found.judged
    ]
    marks = (
        alt.Chart(inline(least))
        .mark_point(filled=True, size=110, shape="triangle-up", color=PALETTE[1])
        .encode(x=x, y=y, tooltip=[tip("iteration:Q", "At iteration"), tip("reward:Q", "At least", ".3g")])
    )
    last = {
        seed: next((reward for reward in reversed(of) if reward is not None), None) for seed, of in found.curves.items()
    }
    several = ", of a seed with several runs the first" if found.num_runs > len(found.curves) else ""
    words = "; ".join(f"seed {seed}: {'none' if reward is None else f'{reward:.3g}'}" for seed, reward in last.items())
    return figure(
        [line, *([marks] if least else [])],
        campaign,
        chart=_name(found),
        height=HEIGHT_PX,
        alt_text=f"Mean return of finished episodes over iterations, one line a seed. At the end: {words}.",
        caption=f"Mean return of finished episodes over iterations, one line a seed{several}. Triangles: a round of"
        " this size below is no measurement. The axis need not start at zero.",
        data=data,
    )


def _name(found: Seeds) -> str:
    """Of no other size: one set and series may have the same frames and steps on two stacks."""
    size = found.size
    parts = (size.rl_library, size.stack, found.case.topology, size.frames_per_iteration, size.optimiser_steps)
    return "-".join(("seeds", *map(str, parts)))


def points(found: Seeds, seed: int) -> list[dict[str, Any]]:
    """Return what is drawn of a seed: every so many iterations, and rewards to four digits."""
    rewards = found.curves[seed]
    stride = stride_of(len(rewards))
    return [
        {"seed": str(seed), "iteration": iteration, "reward": float(f"{reward:.{_DIGITS}g}")}
        for iteration, reward in enumerate(rewards)
        if reward is not None and iteration % stride == 0
    ]
