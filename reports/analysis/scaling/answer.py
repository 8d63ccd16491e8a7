"""The answer of the first page in sentences, computed from its lines. Pure."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.scaling.lines import Line, Mode, Point
from suite.files.wording import counted

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ALIKE: Final = 0.05  # speed-ups that lie no further apart are said once
CHEAP_PERCENT: Final = 15  # more GPU-hours than one GPU takes that nobody minds


def answer(lines: Sequence[Line]) -> str:
    """Return what more GPUs bring if each has its own environments, and if they share a fixed number."""
    said = [_own(most(lines, "own")), _split(most(lines, "split"))]
    return " ".join(sentence for sentence in said if sentence) or (
        "Nothing here ran on one GPU and on several, so nothing is known of how training scales."
    )


def cost_answer(lines: Sequence[Line]) -> str:
    """How often one GPU is the cheapest, and the most GPUs are the quickest, by the medians."""
    cheap, quick = cheapest_and_soonest(lines)
    return (
        f"{counted(len(lines), 'training')} ran on one GPU and on several: {cheap} of them {_take(cheap)} the fewest"
        f" GPU-hours on one GPU, and {quick} {_finish(quick)} soonest on the most GPUs that ran it."
    )


def cheapest_and_soonest(lines: Sequence[Line]) -> tuple[int, int]:
    """How many lines take the fewest GPU-hours on one GPU, and how many finish soonest on the most GPUs."""
    cheap = sum(min(line.points, key=lambda point: point.gpus / point.fps.value) is line.points[0] for line in lines)
    quick = sum(max(line.points, key=lambda point: point.fps.value) is line.points[-1] for line in lines)
    return cheap, quick


def _take(number: int) -> str:
    return "takes" if number == 1 else "take"


def _finish(number: int) -> str:
    return "finishes" if number == 1 else "finish"


def most(lines: Sequence[Line], mode: Mode) -> list[tuple[Line, Point]]:
    """The points of a mode with the most GPUs that any of its lines has, with their lines."""
    ends = [(line, line.points[-1]) for line in lines if line.mode == mode]
    top = max((point.gpus for _, point in ends), default=0)
    return [(line, point) for line, point in ends if point.gpus == top]


def _own(found: Sequence[tuple[Line, Point]]) -> str:
    if not found:
        return ""
    points = [point for _, point in found]
    gpus = f"{_number(points[0].gpus)} {_gpu(found)}s"
    return f"Give every GPU its own environments, and {gpus} process {_span(points)} times the frames of one."


def _split(found: Sequence[tuple[Line, Point]]) -> str:
    if not found:
        return ""
    points = [point for _, point in found]
    low, high = (chosen(point.speedup.value for point in points) for chosen in (min, max))
    between = f"Split a fixed number of environments between {_number(points[0].gpus)}, and they process"
    if _is_alike(low, high):
        return f"{between} {high:.1f} times the frames of one {_gpu(found)}."
    at_worst = f"at worst {low:.1f} times" + (", which is less than one alone" if low < 1 else "")
    return f"{between} {high:.1f} times the frames at best, {at_worst}."


def _gpu(found: Sequence[tuple[Line, Point]]) -> str:
    """The model if there is one only."""
    models = {line.gpu for line, _ in found}
    return models.pop() if len(models) == 1 else "GPU"


def _span(points: Sequence[Point]) -> str:
    low, high = (chosen(point.speedup.value for point in points) for chosen in (min, max))
    return f"{high:.1f}" if _is_alike(low, high) else f"{low:.1f} to {high:.1f}"


def _is_alike(low: float, high: float) -> bool:
    return high - low < ALIKE


def advice(lines: Sequence[Line]) -> str:
    """What to do, by the speed-ups of lines of one key: how many GPUs, how much sooner, for how many GPU-hours more."""
    top, points = ends(lines)
    sooner = _span(points)
    more = sorted(round(100 * (top / point.speedup.value - 1)) for point in points)
    hours = _more(more)
    unsure = "" if all(point.speedup.interval for point in points) else " That is of too few runs to be sure."
    if max(point.speedup.value for point in points) <= 1:
        return f"Use one GPU: {counted(top, 'GPU')} are not faster, and take {hours}.{unsure}"
    if more[-1] <= CHEAP_PERCENT:
        return f"Use {counted(top, 'GPU')} if you can get them: {sooner} times sooner, for {hours}.{unsure}"
    return f"Use {counted(top, 'GPU')} if time matters, one if cost does: {sooner} times sooner, for {hours}.{unsure}"


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
