"""What the forms of charts share: points, texts, axes, lines, whiskers, labels at the marks, title and footer. Pure."""

import json
import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import altair as alt

from reports.display.figure import INK, MUTED_INK, STATIC_WIDTH_PX
from suite.statistics.intervals import CONFIDENCE, Interval

SCHEMA_URL: Final[str] = alt.SCHEMA_URL

type Spec = dict[str, Any]  # a chart as Altair writes it for Vega-Lite

PALETTE: Final = ("#0072B2", "#D55E00", "#007A5A", "#AA4499", "#7A6000", "#4B5563")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES: Final = ([1, 0], [9, 4], [9, 3, 2, 3], [4, 2], [14, 4, 4, 4], [6, 2, 2, 2, 2, 2])
FONT_PX, TITLE_PX, LINE_PX = 12, 14, 15
CHARACTER_PX: Final = 7.4  # of a label; a reader's font may be wider than the one that drawings are made with
LABEL_CHARACTERS: Final = 17  # of a line of a label at the end of a curve
LABEL_PX: Final = 10  # from the plot to its labels
AXIS_PX: Final = 44  # of the axis below the plot, with its title
NARROW_PX: Final = 500  # of a phone, or of one of two charts beside each other
CHARACTERS, CHARACTERS_OF_A_TITLE = (42, 84), (32, 66)  # of a line on a narrow and on a wide screen
FEW_TIMES, MOST_STEPS = 6, 7
SPEC_DIGITS: Final = 6
SHORT_NUMBER: Final = "format(datum.value, '~s')"  # 0, 500, 1k: the axis' own format would write 0k
TIMES: Final = "datum.label + '\u00d7'"


def wrapped(text: str, characters: int) -> list[str]:
    return textwrap.wrap(text, characters, break_on_hyphens=False)


@dataclass(frozen=True, kw_only=True)
class Point:
    """A value: of a line over ``x``, of a row, where it is ``x``, or of a bar, where ``x`` is its length."""

    label: str  # of its line, row or bar
    x: float
    y: float = 0
    interval: Interval | None = None  # at ``CONFIDENCE``
    spread: Interval | None = None  # what the rounding of a published value leaves open
    is_sure: bool = True  # else the point is hollow
    kind: str = ""  # rows of one kind have one colour, and a bar has a part of each kind
    case: str = ""  # what is read by pointing at a row

    @property
    def ends(self) -> Interval:
        """The least and the most that is drawn of its bounds; the value itself where it has none."""
        return self.interval or self.spread or (self.y, self.y)


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What a chart says in its own picture."""

    title: str
    source: str  # which version, what it ran on, and when
    x: str
    y: str = ""
    note: str = ""

    def lines(self, text: str, characters: tuple[int, int]) -> Any:
        """Return a text in lines that fit the width at which it is read."""
        narrow, wide = (wrapped(text, number) for number in characters)
        is_narrow = f"(containerSize()[0] || {STATIC_WIDTH_PX}) < {NARROW_PX}"  # a drawing has no container
        return alt.ExprRef(f"{is_narrow} ? {json.dumps(narrow)} : {json.dumps(wide)}") if narrow != wide else narrow


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A scale with its numbers. A form of chart knows where each value is drawn, so labels can keep apart."""

    title: str
    low: float
    high: float
    ticks: Sequence[float] | None = None
    base: Literal[2, 10] | None = None  # of a logarithmic scale
    number: str = ",~f"  # as many decimals as the steps need
    wording: str = "datum.label"
    has_grid: bool = True

    def encoding(self, channel: type[alt.X] | type[alt.Y], name: str) -> Any:
        """Encode the field ``name``."""
        kind: dict[str, Any] = {"type": "log", "base": self.base} if self.base else {"zero": False}
        ticks: dict[str, Any] = {"tickCount": 5} if self.ticks is None else {"values": list(self.ticks)}
        return channel(
            f"{name}:Q",
            title=self.title,
            scale=alt.Scale(domain=[self.low, self.high], nice=False, **kind),
            axis=alt.Axis(
                **ticks,
                format=self.number,
                labelExpr=self.wording,
                grid=self.has_grid,
                labelOverlap="greedy",
                labelSeparation=6,
            ),
        )

    def px(self, value: float, height: int) -> float:
        """Pixels from the top of a plot so high."""
        low, high, at = (math.log(end) if self.base else end for end in (self.low, self.high, value))
        return height * (high - at) / (high - low)

    def at(self, px: float, height: int) -> float:
        """Return the value that is drawn there, beyond the ends of the axis too."""
        low, high = (math.log(end) if self.base else end for end in (self.low, self.high))
        value = high - (high - low) * px / height
        return math.exp(value) if self.base else value


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between these: 1, 2 and 5 of every power of ten, or equal steps where that would be too few."""
    if high / low < FEW_TIMES:
        power = 10.0 ** math.floor(math.log10(high - low) - 1)
        step = next(power * times for times in (1, 2, 5, 10, 20) if (high - low) / (power * times) <= MOST_STEPS)
        return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for step in (1, 2, 5) if low <= (tick := step * 10.0**power) <= high]


def inline(points: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """A chart's data, in a tuple: altair copies a list anew with each thing that is said of the chart."""
    return alt.InlineData(values=tuple({name: _rounded(value) for name, value in point.items()} for point in points))


def _rounded(value: Any) -> Any:
    """Six significant digits: more than a screen has, and a third of the bytes."""
    return float(f"{value:.{SPEC_DIGITS}g}") if isinstance(value, float) else value


def scale_of(points: Iterable[Point], looks: Sequence[Any], *, each: int = 1) -> alt.Scale:
    """The looks in turn, one for every label by its name; the next one after ``each`` labels."""
    labels = sorted({point.label for point in points})
    return alt.Scale(domain=labels, range=[looks[place // each % len(looks)] for place in range(len(labels))])


def colours(points: Iterable[Point]) -> alt.Color:
    """A colour for each label, without a legend."""
    return alt.Color("label:N", scale=scale_of(points, PALETTE), legend=None)


def lines(points: Sequence[Point], x: Any, y: Any) -> alt.Chart:
    """A line through the points of each label. No two look alike: after all colours come other dashes."""
    dashes = scale_of(points, DASHES, each=len(PALETTE))
    line: alt.Chart = (
        alt.Chart(inline({"label": point.label, "x": point.x, "y": point.y} for point in points))
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=colours(points),
            strokeDash=alt.StrokeDash("label:N", scale=dashes, legend=None),
        )
    )
    return line


def dots(points: Sequence[Point], x: Any, y: Any, tips: Mapping[str, str]) -> list[alt.Chart]:
    """A filled point for each that is sure, else a hollow one. ``tips``: heading -> number format, of x and y."""
    tooltip = [
        alt.Tooltip("label:N", title=" "),
        *(alt.Tooltip(f"{axis}:Q", title=title, format=tips[title]) for axis, title in zip("xy", tips, strict=True)),
    ]
    marks: tuple[tuple[bool, dict[str, Any]], ...] = (
        (True, {"filled": True, "size": 55, "opacity": 1}),
        (False, {"fill": "#ffffff", "size": 50, "strokeWidth": 2}),
    )
    shown = ((mark, [point for point in points if point.is_sure == is_sure]) for is_sure, mark in marks)
    return [
        alt.Chart(inline({"label": point.label, "x": point.x, "y": point.y} for point in these))
        .mark_point(**mark)
        .encode(
            x=x,
            y=y,
            color=colours(points),
            shape=alt.Shape("label:N", scale=scale_of(points, SHAPES), legend=None),
            tooltip=tooltip,
        )
        for mark, these in shown
        if these
    ]


def whiskers(values: Sequence[Mapping[str, Any]], *, along: Literal["x", "y"], across: Any, colour: Any) -> list[Any]:
    """An interval is a bar with caps; a spread is a thin bar without. ``values``: see ``bounds``."""
    layers = []
    other = "y" if along == "x" else "x"
    for is_spread in (False, True):
        shown = [value for value in values if value["is_spread"] == is_spread]
        if not shown:
            continue
        base = alt.Chart(inline(shown)).encode(**{other: across}, color=colour)
        bar = base.mark_rule(strokeWidth=1 if is_spread else 2)
        layers.append(bar.encode(**{along: "low:Q", f"{along}2": "high:Q"}))
        if not is_spread:
            caps = base.mark_tick(thickness=2, size=9, orient="vertical" if along == "x" else "horizontal")
            layers += [caps.encode(**{along: f"{end}:Q"}) for end in ("low", "high")]
    return layers


def bounds(point: Point) -> list[dict[str, Any]]:
    """The fields of ``whiskers``: for its interval, or else its spread; none where the point has neither."""
    ends = point.interval or point.spread
    return [{"low": ends[0], "high": ends[1], "is_spread": point.interval is None}] if ends else []


def line_whiskers(points: Sequence[Point], x: Any) -> list[Any]:
    """The whiskers of points of lines."""
    values = [{"label": point.label, "x": point.x, **ends} for point in points for ends in bounds(point)]
    return whiskers(values, along="y", across=x, colour=colours(points))


def ends_of(points: Sequence[Point]) -> dict[str, Point]:
    """The point of every label that is farthest right."""
    return {point.label: point for point in sorted(points, key=lambda point: point.x)}


def label_lines(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The lines of each label: its value and where, before its name."""
    return {label: wrapped(f"{value}: {label}", LABEL_CHARACTERS) for label, value in texts.items()}


def height_for(labels: Mapping[str, Sequence[str]], least_px: int) -> int:
    """A plot in which all labels find room beside each other."""
    return max(least_px, LINE_PX * sum(len(lines) for lines in labels.values()))


def spread_apart(wanted_px: Mapping[str, float], heights_px: Mapping[str, float], height: int) -> dict[str, float]:
    """Upper edges, each as near to the wanted one as the others and the plot's ends leave it."""
    placed, edge = {}, 0.0
    for label in sorted(wanted_px, key=wanted_px.__getitem__):
        placed[label] = max(wanted_px[label], edge)
        edge = placed[label] + heights_px[label]
    edge = float(height)
    for label in reversed(placed):
        placed[label] = min(placed[label], edge - heights_px[label])
        edge = placed[label]
    return placed


def end_labels(points: Sequence[Point], labels: Mapping[str, Sequence[str]], y: Axis, height: int) -> list[alt.Chart]:
    """The name and the last value of every line, in its colour, right of the plot, with dots that lead there."""
    ends = ends_of(points)
    wanted = {label: y.px(end.y, height) - LINE_PX / 2 for label, end in ends.items()}
    tops = spread_apart(wanted, {label: LINE_PX * len(lines) for label, lines in labels.items()}, height)
    base = alt.Chart(
        inline(
            {
                "label": label,
                "x": end.x,
                "y": end.y,
                "at": y.at(tops[label] + LINE_PX / 2, height),
                "top": y.at(tops[label] + 1, height),
                "text": "\n".join(labels[label]),
            }
            for label, end in ends.items()
        )
    ).encode(color=colours(points))
    lead = base.mark_rule(strokeWidth=1, strokeDash=[1, 3]).encode(
        x=alt.X("x:Q"), x2=alt.value(alt.ExprRef(f"width + {LABEL_PX - 2}")), y=alt.Y("y:Q"), y2=alt.Y2("at:Q")
    )
    text = base.mark_text(align="left", baseline="top", fontSize=FONT_PX, lineBreak="\n", lineHeight=LINE_PX).encode(
        x=alt.value(alt.ExprRef(f"width + {LABEL_PX}")), y=alt.Y("top:Q"), text="text:N"
    )
    return [lead, text]


def room_of(labels: Mapping[str, Sequence[str]]) -> int:
    """Pixels right of the plot that its labels take."""
    longest = max((len(line) for lines in labels.values() for line in lines), default=0)
    return LABEL_PX + math.ceil(CHARACTER_PX * longest)


def layered(
    layers: Sequence[alt.Chart], texts: Texts, points: Collection[Point], *, height: int, room_px: int, description: str
) -> Spec:
    """All layers in one plot, as wide as its container, with its title above and its source below.

    altair's own ``LayerChart`` copies all layers four times, which took a third of the time without the drawing.
    ``said``: the values in words. ``room_px``: right of the plot.
    """
    datasets: dict[str, Any] = {}
    within = {"top_level": False, "datasets": datasets}
    # A test validates; each build would take seconds for it.
    drawn = [layer.to_dict(validate=False, context=within) for layer in (*layers, _footer(texts, height, room_px))]
    title = alt.TitleParams(
        text=texts.lines(texts.title, CHARACTERS_OF_A_TITLE),
        subtitle=wrapped(_how_to_read(texts, points), CHARACTERS[0]),  # Vega-Lite takes no expression here
        anchor="start",
        frame="bounds",
        fontSize=TITLE_PX,
        subtitleFontSize=FONT_PX,
        color=INK,
        subtitleColor=MUTED_INK,
        offset=10,
    )
    return {
        "$schema": SCHEMA_URL,
        "layer": drawn,
        "width": "container",
        "height": height,
        "title": title.to_dict(validate=False),
        "description": f"{texts.title}. {description}.",
        "datasets": {name: list(values) for name, values in datasets.items()},
    }


def _how_to_read(texts: Texts, points: Collection[Point]) -> str:
    """What whiskers and thin bars are, where there are some, and the chart's own note."""
    parts = [texts.note] if texts.note else []
    if any(point.interval for point in points):
        parts.append(f"Whisker: {100 * CONFIDENCE:.0f} % interval.")
    if any(point.spread and not point.interval for point in points):
        parts.append("Thin bar: what rounding leaves open.")
    return " ".join(parts)


def _footer(texts: Texts, height: int, room_px: int) -> alt.Chart:
    text = alt.Chart(inline([{}])).mark_text(
        text=texts.lines(texts.source, CHARACTERS),
        align="right",
        baseline="top",
        fontSize=FONT_PX,
        lineHeight=LINE_PX,
        color=MUTED_INK,
    )
    footer: alt.Chart = text.encode(x=alt.value(alt.ExprRef(f"width + {room_px}")), y=alt.value(height + AXIS_PX))
    return footer
