"""Where the time of an iteration goes, for one series. Pure."""

from collections.abc import Mapping
from typing import Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.time_split import parts_s
from reports.display import html as tables
from reports.display import series_tables
from reports.display.charts.drawing import (
    CASE_LABEL_LIMIT,
    PLAIN_NUMBER,
    as_table,
    colour,
    faded_unless,
    figure,
    inline,
    pick,
    tip,
)
from reports.display.charts.points import case_label
from reports.display.figure import Figure, TableFigure
from reports.display.html import Html

# Blues belong to the rollout, oranges to learning; light and dark alternate, so that neighbours differ without colour.
PART_COLOURS: Final[Mapping[str, str]] = {
    "physics": "#0B4F7D",
    "rendering": "#0072B2",
    "rest of steps": "#4FA3D8",
    "inference": "#9BCBEA",
    "rest of rollout": "#C9CED6",
    "learning": "#F2A35E",
    "all-reduce": "#B94700",
    "waiting": "#7A2E00",
}
CAPTION: Final = (
    "What an iteration is spent on, mean over ranks and rounds. Rest of steps: environment steps without physics and"
    " rendering. Rest of rollout: book-keeping around them. Waiting for other ranks: the least that explains their"
    " times. A part that was not measured stands in the rest of what holds it."
)
BAR_PX: Final = 28
FEWEST_BARS: Final = 3  # one or two are read in their table


def time_split(series: Campaign) -> Figure | TableFigure | Html:
    """What an iteration of each case is spent on, stacked, in seconds; of one or two cases a table."""
    shown = [row for row in series.rows if row.iteration_time_s is not None and series.inside[row.case_id].shares]
    if not shown:
        return tables.paragraph("How an iteration's time divides was not measured for this series.")
    table = series_tables.time_split(series.rows, series.inside)
    if len(shown) < FEWEST_BARS:
        return as_table(series, chart="time-split", caption=CAPTION, data=table)
    labels = {row.case_id: case_label(row, shown) for row in shown}
    data = [
        {"case": labels[row.case_id], "part": part, "order": order, "share": series.inside[row.case_id].shares[part]}
        | {"time_s": time_s}
        for row in shown
        for order, (part, time_s) in enumerate(parts_s(row.iteration_time_s, series.inside[row.case_id].shares).items())
    ]
    present = [part for part in PART_COLOURS if any(point["part"] == part for point in data)]
    picked = pick("part")
    bars = (
        alt.Chart(inline(data))
        .mark_bar(size=18, stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("time_s:Q", title="Iteration time in s", axis=alt.Axis(tickCount=5, format=PLAIN_NUMBER)),
            y=_cases_axis(labels),
            color=colour(present, "part", [PART_COLOURS[part] for part in present]),
            opacity=faded_unless(picked),
            order=alt.Order("order:Q"),
            tooltip=[
                tip("case:N", "Case"),
                tip("part:N", "Part"),
                tip("time_s:Q", "Time in s", ".3g"),
                tip("share:Q", "Share", ".1%"),
            ],
        )
    )
    words = "; ".join(
        f"{labels[row.case_id]}: "
        + ", ".join(f"{part} {tables.percent(share)}" for part, share in series.inside[row.case_id].shares.items())
        for row in shown
    )
    return figure(
        [bars.add_params(picked)],
        series,
        chart="time-split",
        height=BAR_PX * len(shown),
        alt_text=f"Shares of the iteration time. {words}.",
        caption=CAPTION,
        data=table,
    )


def _cases_axis(labels: Mapping[str, str]) -> alt.Y:
    return alt.Y(
        "case:N",
        sort=list(labels.values()),
        title=None,
        axis=alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False),
    )
