"""What a process does until it trains, phase by phase, cold beside warm. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import variant_of
from reports.analysis.start_ups import PARTS, ColdAndWarm, median_parts_s, whole_of
from reports.display.charts.drawing import (
    CASE_LABEL_LIMIT,
    PLAIN_NUMBER,
    colour,
    faded_unless,
    figure,
    inline,
    pick,
    tip,
)
from reports.display.charts.time_split import BAR_PX
from reports.display.figure import Figure
from reports.display.html import Html, estimated, html_table, seconds
from suite.schema.record import Case
from suite.statistics.start_up import Start, StartUp

# Light and dark alternate, so that neighbours differ without colour.
PART_COLOURS: Final[Mapping[str, str]] = dict(
    zip(PARTS, ("#C9CED6", "#4B5563", "#9BCBEA", "#0072B2", "#F2A35E", "#B94700"), strict=True)
)
type _Bar = tuple[str, Start, ColdAndWarm, Sequence[StartUp]]  # label, and which starts of which work


def start_up(series: Campaign, found: Sequence[ColdAndWarm]) -> Figure:
    """``found``: each with cold and warm starts. Two stacked bars for each, in seconds."""
    bars = [bar for both in found for bar in _bars(both, found)]
    data: list[dict[str, Any]] = [
        {"start": label, "part": part, "order": order, "time_s": time_s}
        for label, _, _, starts in bars
        for order, (part, time_s) in enumerate(median_parts_s(starts).items())
    ]
    present = [part for part in PARTS if any(point["part"] == part and point["time_s"] for point in data)]
    picked = pick("part")
    y = alt.Y(
        "start:N",
        sort=[label for label, *_ in bars],
        title=None,
        axis=alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False),
    )
    drawn = (
        alt.Chart(inline([point for point in data if point["part"] in present]))
        .mark_bar(size=18, stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("time_s:Q", title="Start in s", axis=alt.Axis(tickCount=5, format=PLAIN_NUMBER)),
            y=y,
            color=colour(present, "part", [PART_COLOURS[part] for part in present]),
            opacity=faded_unless(picked),
            order="order:Q",
            tooltip=[tip("start:N", "Start"), tip("part:N", "Part"), tip("time_s:Q", "Time in s", ".3g")],
        )
    )
    words = "; ".join(f"{label}: {_in_words(starts)}" for label, _, _, starts in bars)
    return figure(
        [drawn.add_params(picked)],
        series,
        chart="start-up",
        height=BAR_PX * len(bars),
        alt_text=f"Parts of a start in seconds. {words}.",
        caption="From the first line of a process to the end of its first iteration. Each part is its median over the"
        " starts, so the parts need not add up to the median of the whole. Scene: the environment is created."
        " Preparation: ranks are joined, and the library prepares itself.",
        data=_table(bars),
    )


def _bars(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> list[_Bar]:
    kinds: list[tuple[Start, Sequence[StartUp]]] = [("cold", both.cold), ("warm", both.warm)]
    return [(f"{kind.capitalize()}{_which(both, found)}", kind, both, starts) for kind, starts in kinds]


def _which(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> str:
    """What tells the work from that of the other bars."""
    ways: tuple[Callable[[Case], str], ...] = (
        lambda case: case.rl_library,
        lambda case: case.stack,
        lambda case: f"{case.num_envs:,} envs",
        lambda case: case.topology,
        variant_of,
    )
    differing = [way(both.case) for way in ways if len({way(other.case) for other in found}) > 1]
    return "".join(f", {word}" for word in differing if word)


def _in_words(starts: Sequence[StartUp]) -> str:
    return ", ".join(f"{part} {seconds(time_s)}" for part, time_s in median_parts_s(starts).items())


def _table(bars: Sequence[_Bar]) -> Html:
    return html_table(
        ["Start", "Whole start in s", *(f"{part.capitalize()} in s" for part in PARTS), "Starts"],
        (
            [
                label,
                estimated(whole_of(starts), seconds),
                *map(seconds, median_parts_s(starts).values()),
                str(len(starts)),
            ]
            for label, _, _, starts in bars
        ),
        label="Parts of a start",
    )
