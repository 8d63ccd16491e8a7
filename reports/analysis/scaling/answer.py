"""The answer of the first page in sentences, computed from its lines. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.scaling.lines import Line, Mode, Point
from suite.files.wording import counted
from suite.statistics.intervals import Estimate

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ALIKE: Final = 0.05  # speed-ups that lie no further apart are said once


def answer(lines: Sequence[Line]) -> str:
    """Return what more GPUs bring if each has its own environments, and if they share a fixed number."""
    said = [_own(most(lines, "own")), _split(most(lines, "split"))]
    return " ".join(sentence for sentence in said if sentence) or (
        "Nothing here ran on one GPU and on several, so nothing is known of how training scales."
    )


def cost_answer(lines: Sequence[Line]) -> str:
    """How often one GPU is the cheapest, and the most GPUs process the most frames per second, by the medians."""
    cheap, quick = cheapest_and_most_frames(lines)
    return (
        f"{counted(len(lines), 'training')} ran on one GPU and on several: {cheap} of them {_agreeing(cheap, 'take')}"
        f" the fewest GPU-hours for a number of frames on one GPU, and {quick} {_agreeing(quick, 'process')} the most"
        " frames per second on the most GPUs that ran it."
    )


def cheapest_and_most_frames(lines: Sequence[Line]) -> tuple[int, int]:
    """How many lines take the fewest GPU-hours on one GPU, and how many have most frames per second on most GPUs."""
    cheap = sum(min(line.points, key=lambda point: point.gpus / point.fps.value) is line.points[0] for line in lines)
    quick = sum(max(line.points, key=lambda point: point.fps.value) is line.points[-1] for line in lines)
    return cheap, quick


def _agreeing(number: int, verb: str) -> str:
    ending = "es" if verb.endswith("s") else "s"
    return verb + ending if number == 1 else verb


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


def worst_curve(lines: Mapping[str, Sequence[Line]]) -> str:
    """Return a sentence of the line that keeps the least of the ideal on its most GPUs; empty where none is known.

    ``lines``: version -> its lines, newest first. Of a configuration that several versions have, the newest counts.
    """
    newest: dict[tuple[object, ...], tuple[float, Estimate, str, Line]] = {}
    for version, of_version in lines.items():
        for line in of_version:
            gpus, speedup = line.points[-1].gpus, line.points[-1].speedup
            if speedup.interval:
                newest.setdefault((*line.key, gpus), (speedup.value / gpus, speedup, version, line))
    if not newest:
        return ""
    _, speedup, version, line = min(newest.values(), key=lambda each: each[0])
    low, high = speedup.interval or (0.0, math.inf)
    judged = "less than" if high < 1 else "more than" if low > 1 else "not surely more or less than"
    return (
        f"The worst curve is {line.task}, {line.library}, {line.work}: {_gpus([(line, line.points[-1])])} process"
        f" {speedup.value:.2f} times the frames of one ({low:.2f} to {high:.2f}), which is {judged}"
        f" one alone (version {version})."
    )


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
