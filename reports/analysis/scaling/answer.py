"""The answer of the first page in sentences, computed from its lines. Pure."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.scaling.lines import Line, Mode, Point
from suite.files.wording import counted

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ALIKE: Final = 0.05  # speed-ups that lie no further apart are said once


def answer(lines: Sequence[Line]) -> str:
    """Return what more GPUs bring if each has its own environments, and if they share a fixed number."""
    said = [_own(most(lines, "own")), _split(most(lines, "split"))]
    return " ".join(sentence for sentence in said if sentence) or (
        "Nothing here ran on one GPU and on several, so nothing is known of how training scales."
    )


def most(lines: Sequence[Line], mode: Mode) -> list[tuple[Line, Point]]:
    """The points of a mode with the most GPUs that any of its lines has, with their lines."""
    ends = [(line, line.points[-1]) for line in lines if line.mode == mode]
    top = max((point.gpus for _, point in ends), default=0)
    return [(line, point) for line, point in ends if point.gpus == top]


def _own(found: Sequence[tuple[Line, Point]]) -> str:
    if not found:
        return ""
    return f"Give every GPU its own environments, and {_gpus(found)} process {_times(found, 'frames per second')}."


def _split(found: Sequence[tuple[Line, Point]]) -> str:
    if not found:
        return ""
    return f"Split a fixed number of environments between {_gpus(found)}, and they process {_times(found, 'frames')}."


def _times(found: Sequence[tuple[Line, Point]], what: str) -> str:
    """The range of speed-ups, with whose the least and the most are."""
    low, high = (chosen(found, key=lambda each: each[1].speedup.value) for chosen in (min, max))
    whose = _named(*low) if low is high else f"least: {_named(*low)}; most: {_named(*high)}"
    return f"{_span([point for _, point in found])} times the {what} of one ({whose})"


def _named(line: Line, point: Point) -> str:
    span = point.speedup.interval
    interval = f"{span[0]:.2f} to {span[1]:.2f}" if span else "too few runs for an interval"
    return f"{line.task}, {line.library}, {line.work}: {point.speedup.value:.2f}, {interval}"


def _gpus(found: Sequence[tuple[Line, Point]]) -> str:
    """Such as ``four H200s``, by the model if there is one only."""
    models = {line.gpu for line, _ in found}
    return f"{_number(found[0][1].gpus)} {models.pop() if len(models) == 1 else 'GPU'}s"


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


def _number(value: int) -> str:
    return NUMBERS[value] if value < len(NUMBERS) else str(value)
