"""Speed-ups over the versions of the report and the releases that they were measured with. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from reports.display.charts import speedup_marks
from reports.display.charts.drawing import ON_A_PHONE, PALETTE, SHAPES, inline, layered, tip
from reports.display.figure import Figure, make_figure
from reports.display.html import Html, estimated, html_table, ratio, rounds_text
from reports.topics.history.over_versions import Measured, again

HEIGHT_PX: Final = 300
LINE_BREAK: Final = " | "
LABEL_PX: Final = 105  # of a release below the axis
LEGEND_PX, LEGEND_PX_ON_A_PHONE = 480, 215  # the longest line of an entry
ONCE: Final = "measured in one version only"
ONCE_COLOUR: Final = "#9ca3af"


def over_versions(found: Sequence[Measured]) -> Figure:
    """Draw each figure above its version and releases, in a lane of its configuration."""
    points = _points(found)
    names = list(dict.fromkeys(point["name"] for point in points if point["name"] != ONCE))
    shown = [*names, ONCE] if any(point["name"] == ONCE for point in points) else names
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(names))] + [ONCE_COLOUR]
    shapes = [SHAPES[index // len(PALETTE) % len(SHAPES)] for index in range(len(names))] + ["circle"]
    legend = _legend()
    positions = list(dict.fromkeys(point["at"] for point in sorted(points, key=lambda point: point["order"])))
    y = speedup_marks.speedup_axis(speedup_marks.axis_range(each.point.speedup for each in found))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("at:N", title=None, sort=positions, axis=_axis(len(positions))),
        xOffset=alt.XOffset("lane:O"),
        color=alt.Color("name:N", title=None, sort=shown, scale=alt.Scale(domain=shown, range=colours), legend=legend),
    )
    shape = alt.Shape("name:N", title=None, sort=shown, scale=alt.Scale(domain=shown, range=shapes), legend=legend)
    tooltip = [
        tip("configuration:N", "Configuration"),
        tip("version:N", "Version"),
        tip("machine:N", "Machine"),
        tip("releases:N", "Software"),
        tip("said:N", "Speed-up"),
        tip("runs:N", "Runs"),
    ]
    layers = [
        *speedup_marks.intervals(base, points, y, width_px=5),
        *speedup_marks.points(base, points, size=60, y=y, shape=shape, tooltip=tooltip),
    ]
    alt_text = f"Speed-ups by version of the report. {spoken(found)}."
    return make_figure(
        layered(layers, height=HEIGHT_PX, alt_text=alt_text),
        figure_id="speedups-over-versions",
        alt_text=alt_text,
        caption="One lane a configuration and machine, one column a version of the report with its releases.",
        data=_table(found),
    )


def spoken(found: Sequence[Measured]) -> str:
    """Return every figure in words, for who cannot see the chart."""
    return "; ".join(f"{each.configuration}, {each.version}: {ratio(each.point.speedup.value)}" for each in found)


def _points(found: Sequence[Measured]) -> list[dict[str, Any]]:
    """A figure a point; machines of one configuration and version have lanes of their own beside each other."""
    several, versions = again(found), list(dict.fromkeys(each.version for each in found))
    numbers: dict[tuple[object, ...], int] = {}
    points = []
    for each in found:
        key = (each.work, each.version)
        numbers[key] = numbers.get(key, 0) + 1
        values = {
            "name": LINE_BREAK.join(each.parts) if each.work in several else ONCE,
            "configuration": each.configuration,
            "lane": f"{each.configuration} {numbers[key]}",
            "at": LINE_BREAK.join([each.version, *filter(None, each.releases.split(", "))]),
            "order": versions.index(each.version),
            "version": each.version,
            "machine": each.line.machine,
            "releases": ", ".join(filter(None, [each.releases, each.library])),
            **speedup_marks.values_of(each.point),
        }
        points.append(values)
    return points


def _legend() -> alt.Legend:
    """One entry below the other, each on two lines on a phone."""
    label = f"{ON_A_PHONE} ? split(datum.label, '{LINE_BREAK}') : replace(datum.label, '{LINE_BREAK}', ', ')"
    limit = alt.ExprRef(f"{ON_A_PHONE} ? {LEGEND_PX_ON_A_PHONE} : {LEGEND_PX}")
    return alt.Legend(columns=1, labelExpr=label, labelLimit=limit, symbolOpacity=1)


def _axis(positions: int) -> alt.Axis:
    """Versions with their releases below; on a narrow screen without, if they would overlap."""
    lines = f"split(datum.label, '{LINE_BREAK}')"
    is_narrow = f"containerSize()[0] && containerSize()[0] < {LABEL_PX * (positions + 1)}"
    return alt.Axis(labelExpr=f"{is_narrow} ? {lines}[0] : {lines}", labelAngle=0, labelPadding=8, grid=False)


def _table(found: Sequence[Measured]) -> Html:
    return html_table(
        ["Configuration", "Version", "Machine", "Software", "Speed-up", "Runs"],
        (
            [
                each.configuration,
                each.version,
                each.line.machine,
                ", ".join(filter(None, [each.releases, each.library])),
                estimated(each.point.speedup),
                rounds_text([each.point.runs]),
            ]
            for each in found
        ),
        label="Speed-ups by version",
        num_text_columns=4,
        text_headings=("Runs",),
    )
