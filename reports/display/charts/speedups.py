"""Speed-up over the number of GPUs: every line of one way to share the work, with its intervals. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.scaling.lines import Line, Mode
from reports.display.charts import speedup_marks
from reports.display.charts.drawing import (
    PALETTE,
    counts_axis,
    faded_unless,
    inline,
    layered,
    tip,
)
from reports.display.figure import RULE, SMALL_WIDTH_PX, STATIC_WIDTH_PX, Figure, make_figure
from reports.display.html import Html, estimated, html_table, ratio, rounds_text
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL

HEIGHT_PX: Final = 250
CHARACTER_PX, SYMBOL_PX = 7, 200  # of a legend; the axis beside it included
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [1, 4])
TITLES: Final[Mapping[Mode, str]] = {
    "own": "Each GPU runs its own environments",
    "split": "A fixed number is split over the GPUs",
}
CAPTIONS: Final[Mapping[Mode, str]] = {
    "own": "The work grows with the GPUs (weak scaling).",
    "split": "The work stays the same (strong scaling).",
}


def speedups(lines: Sequence[Line], mode: Mode, *, of: str = "", is_alone: bool = False) -> Figure:
    """Draw the lines of a mode. The axis of speed-ups has room for both modes."""
    shown = [line for line in lines if line.mode == mode]
    tasks = sorted({line.task for line in lines})
    dashes_of = _dashes(lines)
    libraries = [library for library in dashes_of if any(line.library == library for line in shown)]
    points = [point for line in shown for point in _points(line)]
    counts = sorted({point["gpus"] for point in points})
    picked = alt.selection_point(name="picked", fields=["task"], bind="legend")
    every_point = [point for line in lines for point in line.points]
    y = speedup_marks.speedup_axis(
        speedup_marks.axis_range((point.speedup for point in every_point), gpus=(point.gpus for point in every_point))
    )
    base = alt.Chart(inline(points)).encode(
        x=counts_axis("gpus", "GPUs", counts),
        y=y,
        color=alt.Color(
            "task:N",
            title=None,
            scale=alt.Scale(domain=tasks, range=PALETTE),
            legend=_legend(tasks, shown=sorted({line.task for line in shown})),
        ),
        detail=alt.Detail("line:N"),
    )
    dashes = alt.StrokeDash(
        "library:N",
        title=None,
        scale=alt.Scale(domain=libraries, range=[dashes_of[library] for library in libraries]),
        legend=_legend(libraries),
    )
    tooltip = [
        tip("task:N", "Task"),
        tip("library:N", "Library"),
        tip("work:N", "Environments"),
        tip("machine:N", "Machine"),
        tip("gpus:Q", "GPUs"),
        tip("said:N", "Speed-up"),
        tip("runs:N", "Runs"),
    ]
    layers = [
        *_ideal(counts, y),
        *speedup_marks.intervals(base, points, y, width_px=6),
        base.mark_line(strokeWidth=2).encode(strokeDash=dashes, opacity=faded_unless(picked)).add_params(picked),
        *speedup_marks.points(base, points, size=70, tooltip=tooltip),
    ]
    alt_text = f"{TITLES[mode]}: {spoken(shown)}."
    return make_figure(
        layered(layers, height=HEIGHT_PX, alt_text=alt_text),
        figure_id=f"speedup-{of}{mode}",
        alt_text=alt_text,
        caption=CAPTIONS[mode],
        data=_table(shown, mode, of),
        static_width_px=STATIC_WIDTH_PX if is_alone else SMALL_WIDTH_PX,
    )


def _ideal(counts: Sequence[int], y: alt.Y) -> list[alt.Chart]:
    """A dotted line with its name."""
    ends = [{"gpus": count, "speedup": count} for count in (counts[0], counts[-1])]
    x = alt.X("gpus:Q")
    line = alt.Chart(inline(ends)).mark_line(color=RULE, strokeDash=[2, 3], strokeWidth=1).encode(x=x, y=y)
    name = alt.Chart(inline(ends[-1:])).mark_text(text="ideal", align="right", dx=-14, dy=-2, color=RULE)
    return [line, name.encode(x=x, y=y)]


def _dashes(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Library -> the dashes of its lines, the same in every chart; those without an addition come first."""
    names = sorted({line.library for line in lines}, key=lambda name: ("," in name, name))
    return {name: list(DASHES[index % len(DASHES)]) for index, name in enumerate(names)}


def _legend(values: Sequence[str], *, shown: Sequence[str] | None = None) -> alt.Legend | None:
    """Return a legend in two columns if they fit, of ``shown`` only; None for one value."""
    if len(values) <= 1:
        return None
    values = values if shown is None else shown
    least_px = SYMBOL_PX + CHARACTER_PX * sum(sorted(map(len, values))[-2:])
    columns = alt.ExprRef(f"(containerSize()[0] || {SMALL_WIDTH_PX}) < {least_px} ? 1 : 2")
    return alt.Legend(values=list(values), columns=columns, labelLimit=260, symbolOpacity=1)


def panels(lines: Sequence[Line], *, of: str = "") -> Html:
    """Both ways to share the work beside each other, those that were measured. ``of``: whose lines, on its own page."""
    modes = [mode for mode in TITLES if any(line.mode == mode for line in lines)]
    shown = [
        (TITLES[mode], speedups(lines, mode, of=of, is_alone=len(modes) == 1)._repr_mimebundle_()) for mode in modes
    ]
    markup = "".join(f"<div><h2>{title}</h2>{figure['text/html']}</div>" for title, figure in shown)
    text = "\n".join(f"{title}\n{figure['text/plain']}" for title, figure in shown)
    return Html(markup=f'<div class="panels">{markup}</div>', text=text)


def spoken(lines: Sequence[Line]) -> str:
    return "; ".join(
        f"{line.task}, {line.library}, {line.machine}: "
        + ", ".join(f"{ratio(point.speedup.value)} on {point.gpus}" for point in line.points[1:])
        for line in lines
    )


def _points(line: Line) -> list[dict[str, Any]]:
    return [
        {
            "task": line.task,
            "library": line.library,
            "work": line.work,
            "machine": line.machine,
            "line": f"{line.series} {line.library} {line.machine}",
            "gpus": point.gpus,
            **speedup_marks.values_of(point),
        }
        | ({"is_sure": point.runs >= MIN_ROUNDS_FOR_INTERVAL} if point is line.points[0] else {})
        for point in line.points
    ]


def _table(lines: Sequence[Line], mode: Mode, of: str) -> Html:
    return html_table(
        ["Task, library", "Environments", "Machine", "GPUs", "Speed-up", "Runs"],
        (
            [
                f"{line.task}, {line.library}",
                line.work,
                line.machine,
                str(point.gpus),
                estimated(point.speedup),
                rounds_text([point.runs]),
            ]
            for line in lines
            for point in line.points[1:]
        ),
        label=f"Speed-ups {of}: {TITLES[mode]}",
        num_text_columns=3,
        text_headings=("Runs",),
    )
