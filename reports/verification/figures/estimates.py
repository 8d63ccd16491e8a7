"""Figures that follow from several samples, each with its 95 % interval. Pure.

A sample has one value of each process. What it adds to the standard error of a figure is how far the figure moves when
the mean logarithm of the sample moves by its own standard error. All of it together gives Welch's t interval.
"""

import math
import statistics
from collections.abc import Callable, Collection, Sequence

from reports.verification import formulas

type Estimate = tuple[float, formulas.Interval | None]
type Figure = Callable[[Sequence[float]], float]  # of one value for each sample


def median_of(values: Collection[float]) -> Estimate | None:
    """Return the median with its interval; None without a value."""
    known = list(values)
    return (formulas.median(known), formulas.interval(known)) if known else None


def estimate(samples: Sequence[Collection[float]], figure: Figure, *, is_positive: bool) -> Estimate:
    """Return the figure of the medians; that of a figure which is always above 0 has an interval on its logarithm."""
    value = figure([formulas.median(list(sample)) for sample in samples])
    if min(map(len, samples)) < formulas.MIN_PROCESSES:
        return value, None
    to, back = (math.log, math.exp) if is_positive else (float, float)
    logs = [[math.log(each) for each in sample] for sample in samples]
    means, errors = [statistics.fmean(each) for each in logs], list(map(_standard_error, logs))

    def at(place: int, moved_by: float) -> float:
        return to(figure([math.exp(mean + moved_by * (index == place)) for index, mean in enumerate(means)]))

    centre = at(0, 0.0)
    changes = [(at(place, error) - at(place, -error)) / 2 for place, error in enumerate(errors)]
    if not all(map(math.isfinite, (value, centre, *changes))):
        return value, None
    half = _half_width(changes, [len(sample) for sample in samples])
    return value, (min(value, back(centre - half)), max(value, back(centre + half)))


def mean_difference(differences: Sequence[float]) -> Estimate:
    """Return the median of differences, which may be below 0, with the interval of their mean."""
    value = formulas.median(differences)
    if len(differences) < formulas.MIN_PROCESSES:
        return value, None
    centre = statistics.fmean(differences)
    half = _half_width([_standard_error(differences)], [len(differences)])
    return value, (min(value, centre - half), max(value, centre + half))


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def _half_width(changes: Sequence[float], counts: Sequence[int]) -> float:
    """Return t times the standard error, with the degrees of freedom by Welch and Satterthwaite."""
    total = math.fsum(change**2 for change in changes)
    if total == 0:
        return 0.0
    parts = math.fsum(change**4 / (count - 1) for change, count in zip(changes, counts, strict=True))
    return formulas.student_t(total**2 / parts) * math.sqrt(total)
