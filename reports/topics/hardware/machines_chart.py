"""Frames per second of machines over the time of their core probe. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from reports.analysis.trainings import Training
from reports.display.charts.drawing import Point, Texts
from reports.display.charts.sweep import sweep
from reports.display.figure import Figure, make_figure
from reports.display.html import Cell, Html, count, estimated, html_table, machine_cell, named_of
from suite.files.wording import slug
from suite.statistics.intervals import Estimate
from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE


def frames_of_machines(training: Training, name: str, machine_names: Mapping[str, str], source: str) -> Figure:
    """Draw a point for each machine and a line for each GPU model. ``machine_names``: by their labels."""
    points = _points(training, machine_names)
    texts = Texts(
        title="Frames per second over the CPU core's speed",
        note=f"{name}. A point is a machine.",
        source=source,
        x="Core probe in \u00b5s",
        y="Frames per second",
        is_small=True,
    )
    lines = [end for gpu in training.model.gpus for end in _line(training, gpu, points)]
    return make_figure(
        sweep(points, texts, through=lines),
        figure_id=f"core-speed-{slug(training.case.case_id)}",
        data=named_of(_table(points), name),
        is_small=True,
    )


def _points(training: Training, machine_names: Mapping[str, str]) -> list[Point]:
    """The machines as they were measured, the one with the fastest cores first."""
    points = []
    for machine in training.machines:
        log_time, log_probe = map(statistics.fmean, zip(*machine.runs, strict=True))
        measured = training.frames(Estimate(value=math.exp(log_time), interval=None))
        at_full_speed = training.frames(training.model.time_of(machine))
        told = {
            "Machine": machine_names.get(machine.label, machine.label),
            "Runs": str(len(machine.runs)),
            "At 100 \u00b5s": estimated(at_full_speed, count),
        }
        points.append(Point(label=machine.gpu, x=1e6 * math.exp(log_probe), y=measured.value, told=told))
    return sorted(points, key=lambda point: point.x)


def _line(training: Training, gpu: str, points: list[Point]) -> list[Point]:
    """The ends of what machines with this GPU model make by the slope: at full core speed, and on the slowest core."""
    slope, full_us = training.model.slope, 1e6 * math.exp(FULL_SPEED_LOG_PROBE)
    ends = [full_us, *(point.x for point in points if point.label == gpu)]
    fps = training.fps(gpu).value
    return [Point(label=gpu, x=end, y=fps * (full_us / end) ** slope.value) for end in (min(ends), max(ends)) if slope]


def _table(points: list[Point]) -> Html:
    headings = ["Machine", "GPU", "Runs", "Core probe in \u00b5s", "Frames/s", "Frames/s at 100 \u00b5s"]
    rows: Iterable[Sequence[Cell]] = (
        [
            machine_cell(point.told["Machine"]),
            point.label,
            point.told["Runs"],
            count(point.x),
            count(point.y),
            point.told["At 100 \u00b5s"],
        ]
        for point in points
    )
    return html_table(headings, rows, label="Machines at full core speed", num_text_columns=2)
