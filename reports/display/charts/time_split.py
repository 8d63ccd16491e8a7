"""Where the time of an iteration goes, how far ranks lie apart, memory and energy, for one series. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.time_split import Inside, Values
from reports.display import html as tables
from reports.display import resource_tables, series_tables
from reports.display.charts.drawing import (
    CASE_LABEL_LIMIT,
    PLAIN_NUMBER,
    colour,
    faded_unless,
    figure,
    inline,
    named,
    pick,
    tip,
)
from reports.display.charts.points import MAX_RANKS, case_label, some_ranks
from reports.display.figure import INK, RULE, Figure
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
BAR_PX: Final = 28
FEWEST_BARS: Final = 3  # one or two numbers are read in their table


def time_split(series: Campaign) -> Figure | Html:
    """What an iteration of each case is spent on, stacked, in seconds."""
    shown = [row for row in series.rows if row.iteration_time_s is not None and series.inside[row.case_id].shares]
    if not shown:
        return tables.paragraph("How an iteration's time divides was not measured for this series.")
    labels = {row.case_id: case_label(row, shown) for row in shown}
    data = [
        {"case": labels[row.case_id], "part": part, "order": order, "share": share}
        | {"time_s": share * (row.iteration_time_s or 0)}
        for row in shown
        for order, (part, share) in enumerate(series.inside[row.case_id].shares.items())
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
        caption="What an iteration is spent on, mean over ranks and rounds. Rest of steps: environment steps without"
        " physics and rendering. Rest of rollout: book-keeping around them. Waiting for other ranks: the least that"
        " explains their times. A part that was not measured stands in the rest of what holds it.",
        data=series_tables.time_split(series.rows, series.inside),
    )


def rank_skew(series: Campaign) -> Figure | Html:
    """Iteration time of each rank over that of the median rank."""
    shown = [row for row in series.rows if series.inside[row.case_id].rank_ratios]
    if not shown:
        return tables.paragraph("No case with more than one rank completed, so no rank can be late.")
    labels = {row.case_id: case_label(row, shown) for row in shown}
    data: list[dict[str, Any]] = [
        {"case": labels[row.case_id], "rank": rank, "excess": ratio.median - 1}
        | {"low": ratio.low - 1, "high": ratio.high - 1}
        for row in shown
        for rank, ratio in some_ranks(series.inside[row.case_id].rank_ratios)
    ]
    base = alt.Chart(inline(data)).encode(y=_cases_axis(labels))
    reach: float = max(abs(point[name]) for point in data for name in ("low", "high"))
    precision = 0 if reach > 0.03 else 1 if reach > 0.003 else 2 if reach > 0.0003 else 3  # noqa: PLR2004 - digits
    x = alt.X(
        "excess:Q",
        title="Behind the median rank by",
        axis=alt.Axis(format=f"+.{precision}%", tickCount=4, labelOverlap="greedy"),
    )
    spread = base.mark_rule(color="#0072B2", opacity=0.45, strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    ranks = base.mark_point(filled=True, size=70, color="#0072B2", opacity=0.9).encode(
        x=x,
        tooltip=[
            tip("case:N", "Case"),
            tip("rank:Q", "Rank"),
            tip("excess:Q", "Slower by", "+.2%"),
            tip("low:Q", "Least round", "+.2%"),
            tip("high:Q", "Most", "+.2%"),
        ],
    )
    zero = alt.Chart(inline([{}])).mark_rule(color=RULE).encode(x=alt.XDatum(0))
    left_out = (
        f" Of more than {MAX_RANKS} ranks the fastest, the slowest and those at the quartiles are shown."
        if any(row.world_size > MAX_RANKS for row in shown)
        else ""
    )
    words = "; ".join(f"{labels[row.case_id]}: {tables.percent(row.rank_skew)}" for row in shown)
    return figure(
        [zero, spread, ranks],
        series,
        chart="rank-skew",
        height=BAR_PX * len(shown),
        alt_text=f"Iteration time of each rank against the median rank. Slowest over median, by case: {words}.",
        caption="Each dot is a rank, median over rounds; its line reaches over the rounds. Ranks wait for each other in"
        f" every all-reduce, so their iterations end close together even where their work does not.{left_out}",
        data=series_tables.rank_ratios(series.rows, series.inside),
    )


def memory(series: Campaign) -> Figure | Html:
    """Peak memory of the fullest rank, as torch's allocator counts it; of few cases a table."""
    return _bars(
        series,
        lambda found: found.peak_memory_gb,
        chart="memory",
        title="Peak of torch's allocator in GB",
        number_format=".3g",
        caption="Peak of what torch allocated on the GPU of the rank with most. What simulation and rendering allocate"
        " by other means is not in it; all that is in use on the GPU, by whichever process, is in the table where it"
        " was sampled.",
        data=resource_tables.memory(series.rows, series.inside),
        nothing="Memory was not measured: on a CPU there is no allocator to ask.",
    )


def energy(series: Campaign) -> Figure | Html:
    """Energy of all GPUs of a case for a million environment steps; of few cases a table."""
    reasons = dict.fromkeys(reason for found in series.inside.values() for reason in found.without_telemetry)
    return _bars(
        series,
        lambda found: found.joules_per_million_frames,
        chart="energy",
        title="Energy for a million frames in J",
        number_format=",.0f",
        caption="Energy of the case's GPUs in the steady iterations by the driver's counters, for a million environment"
        " steps. The host's own consumption is not in it.",
        data=resource_tables.energy(series.rows, series.inside),
        nothing=f"Energy was not measured: {'; '.join(reasons) or 'no GPU was used'}.",
    )


def _bars(
    series: Campaign,
    value: Callable[[Inside], Values | None],
    *,
    chart: str,
    title: str,
    number_format: str,
    caption: str,
    data: Html,
    nothing: str,
) -> Figure | Html:
    found = [(row, values) for row in series.rows if (values := value(series.inside[row.case_id])) is not None]
    if not found:
        return tables.paragraph(nothing)
    if len(found) < FEWEST_BARS:
        return tables.together([tables.paragraph(caption), tables.named_of(data, named(series))])
    shown = [row for row, _ in found]
    labels = {row.case_id: case_label(row, shown) for row in shown}
    points: Sequence[dict[str, Any]] = [
        {"case": labels[row.case_id], "case_id": row.case_id, "value": values.median}
        | {"low": values.low, "high": values.high, "text": format(values.median, number_format)}
        for row, values in found
    ]
    base = alt.Chart(inline(points)).encode(y=_cases_axis(labels))
    x = alt.X("value:Q", title=title, axis=alt.Axis(tickCount=5, format=PLAIN_NUMBER), scale=alt.Scale(zero=True))
    bars = base.mark_bar(size=18, color="#0072B2").encode(
        x=x, tooltip=[tip("case_id:N", "Case"), tip("value:Q", title, number_format)]
    )
    texts = base.mark_text(align="left", dx=6, fontSize=12, fontWeight=600).encode(
        x=alt.X("high:Q"), text=alt.Text("text:N")
    )
    whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    return figure(
        [bars, whiskers, texts],
        series,
        chart=chart,
        height=BAR_PX * len(shown),
        alt_text=f"{title}. " + "; ".join(f"{point['case']}: {point['text']}" for point in points) + ".",
        caption=caption,
        data=data,
        is_labelled=True,
    )


def _cases_axis(labels: Mapping[str, str]) -> alt.Y:
    return alt.Y(
        "case:N",
        sort=list(labels.values()),
        title=None,
        axis=alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False),
    )
