"""Frames per second of machines over the time of their core probe. Pure."""

import math
import statistics
from collections.abc import Mapping
from typing import Any, Final

import altair as alt

from reports.analysis.trainings import Training
from reports.display.charts.drawing import colour, faded_unless, fps_axis, inline, layered, pick, shape, tip
from reports.display.figure import SMALL_WIDTH_PX, Figure, make_figure
from reports.display.html import Html, count, estimated, html_table, machine_cell, named_of
from suite.files.wording import slug
from suite.statistics.intervals import Estimate
from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE

HEIGHT_PX: Final = 240
TICKS_US: Final = (50, 75, 100, 150, 200, 300, 400, 600, 800)


def frames_of_machines(training: Training, name: str, machine_names: Mapping[str, str]) -> Figure:
    """Draw a point for each machine and a line for each GPU model. ``machine_names``: by their labels."""
    points, gpus = _points(training, machine_names), training.model.gpus
    lines = [end for gpu in gpus for end in _line(training, gpu, points)]
    picked = pick("gpu")
    probes = [end["probe_us"] for end in (*points, *lines)]
    x = alt.X(
        "probe_us:Q",
        title="Core probe in µs, log scale",
        scale=alt.Scale(type="log", domain=[0.97 * min(probes), 1.03 * max(probes)], nice=False),
        axis=alt.Axis(values=list(TICKS_US), format="d", grid=False),
    )
    y = fps_axis([end["fps"] for end in (*points, *lines)])
    colours, faded = colour(gpus, "gpu"), faded_unless(picked)
    tooltip = [
        tip("machine:N", "Machine"),
        tip("gpu:N", "GPU"),
        tip("probe_us:Q", "Core probe in µs", ".0f"),
        tip("fps:Q", "Frames per second", ",.0f"),
        tip("runs:Q", "Runs"),
    ]
    marks = alt.Chart(inline(points)).mark_point(filled=True, size=75)
    spoken = "; ".join(f"{each['gpu']}, {each['probe_us']:.0f} µs: {each['fps']:,.0f}" for each in points)
    alt_text = f"Frames per second of machines over their core probe: {name}. {spoken}."
    layers = [
        marks.encode(x=x, y=y, color=colours, opacity=faded, shape=shape(gpus, "gpu"), tooltip=tooltip).add_params(
            picked
        ),
        alt.Chart(inline(lines)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colours, opacity=faded),
    ]
    return make_figure(
        layered(layers, height=HEIGHT_PX, alt_text=alt_text),
        figure_id=f"core-speed-{slug(training.case.case_id)}",
        alt_text=alt_text,
        caption="",
        data=named_of(_table(points), name),
        static_width_px=SMALL_WIDTH_PX,
    )


def _points(training: Training, machine_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The machines as they were measured, the one with the fastest cores first."""
    points = []
    for machine in training.machines:
        log_time, log_probe = map(statistics.fmean, zip(*machine.runs, strict=True))
        measured = training.frames(Estimate(value=math.exp(log_time), interval=None))
        at_full_speed = training.frames(training.model.time_of(machine))
        points.append(
            {
                "machine": machine_names.get(machine.label, machine.label),
                "gpu": machine.gpu,
                "runs": len(machine.runs),
                "probe_us": 1e6 * math.exp(log_probe),
                "fps": measured.value,
                "at_full_speed": estimated(at_full_speed, count),
            }
        )
    return sorted(points, key=lambda point: point["probe_us"])


def _line(training: Training, gpu: str, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ends of what machines with this GPU model make by the slope: at full core speed, and on the slowest core."""
    slope, full_us = training.model.slope, 1e6 * math.exp(FULL_SPEED_LOG_PROBE)
    ends = [full_us, *(point["probe_us"] for point in points if point["gpu"] == gpu)]
    fps = training.fps(gpu).value
    return [
        {"gpu": gpu, "probe_us": end, "fps": fps * (full_us / end) ** slope.value}
        for end in (min(ends), max(ends))
        if slope
    ]


def _table(points: list[dict[str, Any]]) -> Html:
    headings = ["Machine", "GPU", "Runs", "Core probe in µs", "Frames/s", "Frames/s at 100 µs"]
    rows = (
        [
            machine_cell(point["machine"]),
            point["gpu"],
            str(point["runs"]),
            count(point["probe_us"]),
            count(point["fps"]),
            point["at_full_speed"],
        ]
        for point in points
    )
    return html_table(headings, rows, label="Machines at full core speed", num_text_columns=2)
