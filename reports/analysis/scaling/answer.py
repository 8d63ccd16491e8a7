"""The answer of the first page in sentences, computed from its lines. Pure."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.scaling.lines import Line, Point
from suite.files.wording import counted

ALIKE: Final = 0.05  # speed-ups that lie no further apart are said once


def _span(points: Sequence[Point]) -> str:
    low, high = (chosen(point.speedup.value for point in points) for chosen in (min, max))
    return f"{high:.1f}" if _is_alike(low, high) else f"{low:.1f} to {high:.1f}"


def _is_alike(low: float, high: float) -> bool:
    return high - low < ALIKE


def advice(lines: Sequence[Line]) -> str:
    """What more GPUs bring and cost, by the speed-ups of lines of one key. Frames say nothing of learning."""
    top, points = ends(lines)
    more = sorted(round(100 * (top / point.speedup.value - 1)) for point in points)
    hours = f"for {_more(more)} per frame"
    unsure = "" if all(point.speedup.interval for point in points) else " That is of too few runs to be sure."
    times = f"{counted(top, 'GPU')} process {_span(points)} times the frames per second of one, {hours}.{unsure}"
    return times if max(point.speedup.value for point in points) > 1 else f"Use one GPU: {times}"


def ends(lines: Sequence[Line]) -> tuple[int, list[Point]]:
    """The most GPUs that any line has, and the points there."""
    top = max(line.points[-1].gpus for line in lines)
    return top, [point for line in lines if (point := line.at(top)) is not None]


def _more(percents: Sequence[int]) -> str:
    low, high = max(0, percents[0]), max(0, percents[-1])
    if not high:
        return "no more GPU-hours"
    return f"{high} % more GPU-hours" if low == high else f"{low} to {high} % more GPU-hours"
