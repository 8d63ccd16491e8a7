"""What the charts share: colours, axes, labels at the marks, legends that select. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import CaseRow
from reports.display.charts.points import case_points, curves_of
from reports.display.figure import PADDING, RULE, SMALL_WIDTH_PX, STATIC_WIDTH_PX, Figure, TableFigure, make_figure
from reports.display.html import Html, named_of

SCHEMA_URL: Final[str] = alt.SCHEMA_URL
PALETTE: Final = ("#0072B2", "#D55E00", "#007A5A", "#AA4499", "#7A6000", "#4B5563")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES: Final = ([1, 0], [6, 3], [2, 2])
RULE_DASH: Final = [5, 4]
SHORT_NUMBER: Final = "format(datum.value, '~s')"  # 0, 500, 1k: the axis' own format would write 0k
PLAIN_NUMBER: Final = ",~f"  # as many decimals as the steps need; "~g" makes 200 of large axes 2e+2
FADED: Final = 0.15
SPEC_DIGITS: Final = 6
# Of the longest two, which may stand side by side.
TWO_COLUMNS_CHARACTERS, TWO_COLUMNS_CHARACTERS_ON_A_PHONE = 40, 24
LABEL_SEPARATION_PX: Final = 6  # between the numbers of an axis, which read as one number where they touch
LABEL_GAP_PX: Final = 14  # between two labels, so that neither touches the other
LABEL_MARGIN_PX: Final = 52  # right of the last point
# In pixels; more would leave no room for bars on a phone. A drawing that is not live has no container.
ON_A_PHONE: Final = "containerSize()[0] && containerSize()[0] < 500"
CASE_LABEL_LIMIT: Final = f"{ON_A_PHONE} ? 120 : 230"


def figure_id(campaign: Campaign, chart: str) -> str:
    """Unique on the site: set, series, chart."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part) for part in _name(campaign, chart))


def named(campaign: Campaign) -> str:
    """What tells a table of one series and set from that of another on the same page."""
    return f"{campaign.rows[0].series} {campaign.title}".strip()


def _name(campaign: Campaign, chart: str) -> list[str]:
    return [part for part in (campaign.name, campaign.rows[0].series, chart) if part]


def figure(
    layers: Sequence[alt.Chart],
    campaign: Campaign,
    *,
    chart: str,
    height: int,
    alt_text: str,
    caption: str,
    data: Html,
    is_labelled: bool = False,
    is_small: bool = False,
    others: Sequence[Campaign] = (),
) -> Figure:
    """``is_labelled`` leaves room on the right for the labels of ``end_labels``.

    The caption says where the campaign ran and ``others`` that it shows, unless the figure is a small one among many.
    """
    padding = {"padding": {**PADDING, "right": LABEL_MARGIN_PX}} if is_labelled else {}
    return make_figure(
        {**layered(layers, height=height, alt_text=alt_text), **padding},
        figure_id=figure_id(campaign, chart),
        alt_text=alt_text,
        caption=caption if is_small else _with_where(caption, (campaign, *others)),
        data=named_of(data, " ".join(_name(campaign, chart))),
        static_width_px=SMALL_WIDTH_PX if is_small else STATIC_WIDTH_PX,
    )


def as_table(campaign: Campaign, *, chart: str, caption: str, data: Html) -> TableFigure:
    """What takes the place of a chart of too few numbers."""
    return TableFigure(
        figure_id=figure_id(campaign, chart),
        caption=_with_where(caption, [campaign]),
        data=named_of(data, " ".join(_name(campaign, chart))),
    )


def _with_where(caption: str, campaigns: Sequence[Campaign]) -> str:
    return f"{caption} Ran on {'; '.join(dict.fromkeys(one.where for one in campaigns))}."


def layered(layers: Sequence[alt.Chart], *, height: int, alt_text: str) -> dict[str, Any]:
    """A Vega-Lite spec of layers in one plot, as wide as its container. The first layer has data.

    altair's own ``LayerChart`` copies all layers four times, which took a third of the time without the drawing.
    """
    datasets: dict[str, Any] = {}
    within = {"top_level": False, "datasets": datasets}
    # A test validates; each build would take seconds for it.
    drawn = [layer.to_dict(validate=False, context=within) for layer in layers]
    params = [param for layer in drawn for param in _taken_out_of(layer)]
    whole: dict[str, Any] = {"params": params} if params else {}
    if all(layer["data"] == drawn[0]["data"] for layer in drawn):
        whole["data"] = drawn[0]["data"]
        for layer in drawn:
            del layer["data"]
    spec = {"layer": drawn, "width": "container", "height": height, "description": alt_text, **whole}
    return {"$schema": SCHEMA_URL, **rounded(spec), "datasets": rounded(datasets)}


def _taken_out_of(layer: dict[str, Any]) -> list[Any]:
    """Remove and return its variables, which only a whole spec may have; its selections stay."""
    params = layer.pop("params", [])
    if selections := [param for param in params if "select" in param]:
        layer["params"] = selections
    return [param for param in params if "select" not in param]


def inline(points: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """A chart's data, in a tuple: altair copies a list anew with each thing that is said of the chart."""
    return alt.InlineData(values=tuple(points))


def rows_data(rows: Iterable[CaseRow]) -> alt.InlineData:
    return inline(case_points(rows))


def tip(field: str, title: str, number_format: str | None = None) -> alt.Tooltip:
    return (
        alt.Tooltip(field, title=title)
        if number_format is None
        else alt.Tooltip(field, title=title, format=number_format)
    )


def ranks_axis(rows: Sequence[CaseRow]) -> alt.X:
    unit = "GPUs" if all(row.device == "cuda" for row in rows) else "Ranks"
    return counts_axis("world_size", unit, (row.world_size for row in rows))


def counts_axis(field: str, unit: str, counts: Iterable[int], *, is_crowded: bool = False) -> alt.X:
    """Doublings are equally far apart, and every count has its number, unless they are ``is_crowded``."""
    overlap: Literal["greedy"] | alt.UndefinedType = "greedy" if is_crowded else alt.Undefined
    return alt.X(
        f"{field}:Q",
        title=f"{unit}, log scale",
        scale=alt.Scale(type="log", base=2, padding=24, nice=False),
        axis=alt.Axis(
            values=sorted(set(counts)),
            format="d",
            grid=False,
            labelOverlap=overlap,
            labelSeparation=LABEL_SEPARATION_PX,
        ),
    )


def fps_axis(values: Sequence[float]) -> alt.Y:
    ticks = log_ticks(min(values), max(values))
    return alt.Y(
        "fps:Q",
        title="Frames per second, log scale",
        scale=alt.Scale(type="log", domain=[ticks[0], ticks[-1]], nice=False),
        axis=alt.Axis(labelExpr=SHORT_NUMBER, values=ticks),
    )


def efficiency_axis(field: str, *, top: float, title: str = "Scaling efficiency") -> alt.Y:
    """From zero, so that heights can be compared."""
    return alt.Y(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
    )


def dashed_line_at(y: float) -> alt.Chart:
    """What a figure's points are compared with."""
    shown = alt.Chart(inline([{}]))
    line: alt.Chart = shown.mark_rule(color=RULE, strokeDash=RULE_DASH).encode(y=alt.YDatum(y))
    return line


def pick(field: str) -> alt.Parameter:
    """A click on a legend's entry fades the others. It has to be added to the first layer that has this legend.

    The name is fixed: a counter would change from build to build.
    """
    return alt.selection_point(name="picked", fields=[field], bind="legend")


def faded_unless(picked: alt.Parameter, opacity: float = 1) -> Any:
    # alt.condition would say the same as a dict, whose class altair would have to search for.
    return alt.OpacityValue(FADED, condition={"param": picked.name, "value": opacity})


def legend_of(values: Sequence[str]) -> alt.Legend | None:
    """Only where there is more than one thing to tell apart; in two columns where they fit."""
    if len(values) <= 1:
        return None
    longest = sum(sorted(map(len, values))[-2:])
    on_a_phone, columns = (
        1 if longest > most else 2 for most in (TWO_COLUMNS_CHARACTERS_ON_A_PHONE, TWO_COLUMNS_CHARACTERS)
    )
    return alt.Legend(
        columns=alt.ExprRef(f"{ON_A_PHONE} ? {on_a_phone} : {columns}"),
        labelLimit=alt.ExprRef(f"{ON_A_PHONE} ? 210 : 260"),
    )


def colour(values: Sequence[str], field: str = "curve", colours: Sequence[str] = PALETTE) -> alt.Color:
    legend = legend_of(values)
    return alt.Color(
        f"{field}:N", title=None, sort=list(values), scale=alt.Scale(domain=values, range=colours), legend=legend
    )


def shape(values: Sequence[str], field: str = "curve") -> alt.Shape:
    legend = legend_of(values)
    return alt.Shape(
        f"{field}:N", title=None, sort=list(values), scale=alt.Scale(domain=values, range=SHAPES), legend=legend
    )


def lines_and_points(
    base: alt.Chart, rows: Sequence[CaseRow], *, y: alt.Y, tooltip: list[alt.Tooltip], picked: alt.Parameter
) -> list[alt.Chart]:
    curves = curves_of(rows)
    coloured = base.encode(y=y, color=colour(curves), opacity=faded_unless(picked))
    points = coloured.mark_point(filled=True, size=75).encode(
        shape=shape(curves), tooltip=[tip("case_id:N", "Case"), *tooltip]
    )
    points = points.add_params(picked)
    return [points, coloured.mark_line(strokeWidth=2)]


def intervals(rows: Sequence[CaseRow], *, x: alt.X, low: str, high: str, picked: alt.Parameter) -> list[alt.Chart]:
    """Whiskers where there is an interval; no layer where there is none."""
    shown = [point for point in case_points(rows) if low in point]
    if not shown:
        return []
    base = alt.Chart(inline(shown)).encode(x=x, color=colour(curves_of(rows)), opacity=faded_unless(picked))
    whisker = base.mark_rule(strokeWidth=2).encode(y=alt.Y(f"{low}:Q"), y2=alt.Y2(f"{high}:Q"))
    caps = [base.mark_tick(thickness=2, size=9).encode(y=alt.Y(f"{name}:Q")) for name in (low, high)]
    return [whisker, *caps]


def end_labels(
    values: Mapping[str, tuple[float, str]], *, to_px: Mapping[str, float], colours: Mapping[str, str], x: alt.X
) -> list[alt.Chart]:
    """The last value of every curve, in its colour, right of its last point; none touches another.

    ``values``: curve -> world size and text; ``to_px``: curve -> pixels from the top of the plot.
    """
    placed = spread(to_px)
    return [
        alt.Chart(inline([{"world_size": world_size}]))
        .mark_text(text=text, align="left", dx=9, fontSize=12, fontWeight=600, color=colours[curve])
        .encode(x=x, y=alt.value(placed[curve]))
        for curve, (world_size, text) in values.items()
    ]


def spread(wanted_px: Mapping[str, float]) -> dict[str, float]:
    """Positions at least ``LABEL_GAP_PX`` apart, in the order of the wanted ones, as a group where they were wanted."""
    placed: dict[str, float] = {}
    below = float("-inf")
    for name, position in sorted(wanted_px.items(), key=lambda item: item[1]):
        placed[name] = below = max(position, below + LABEL_GAP_PX)
    if not placed:
        return placed
    shift = (sum(wanted_px.values()) - sum(placed.values())) / len(placed)
    return {name: position + shift for name, position in placed.items()}


def curve_colours(rows: Iterable[CaseRow]) -> dict[str, str]:
    return {curve: PALETTE[index % len(PALETTE)] for index, curve in enumerate(curves_of(rows))}


def last_rows(rows: Iterable[CaseRow]) -> dict[str, CaseRow]:
    """The row with the most ranks of every curve."""
    last: dict[str, CaseRow] = {}
    for row in sorted(rows, key=lambda row: row.world_size):
        last[row.curve] = row
    return last


def ideal_line(base: alt.Chart, y: alt.Y, detail: alt.Detail) -> alt.Chart:
    line: alt.Chart = base.mark_line(color=RULE, strokeDash=RULE_DASH, strokeWidth=1.5).encode(y=y, detail=detail)
    return line


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten from below ``low`` to above ``high``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    first = max(index for index, tick in enumerate(ticks) if tick <= low)
    last = min(index for index, tick in enumerate(ticks) if tick >= high)
    return ticks[first : last + 1]


def rounded(value: Any) -> Any:
    """Six significant digits: more than a screen has, and a third of the bytes."""
    if isinstance(value, float):
        return float(f"{value:.{SPEC_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value
