"""Laws of scaling: least squares whose coefficients are not below 0, tried for every choice of terms. Pure.

A law says that a measured quantity is a sum of terms, each a coefficient times a function of the number of ranks:

amdahl      seconds per frame = serial + divided / ranks
gustafson   frames per second = constant + each * ranks
usl         rank-seconds per frame = one + sigma * (ranks - 1) + kappa * ranks * (ranks - 1)

The sum of squared relative errors is least. Its minimum under the bounds is the least squares of some of the terms
alone, so each choice of terms is tried; there are at most seven.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from reports.verification.figures.estimates import Estimate, estimate
from reports.verification.figures.published import SUPERLINEAR
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size

TERMS: Final[dict[str, Callable[[int], tuple[float, ...]]]] = {
    "amdahl": lambda ranks: (1, 1 / ranks),
    "gustafson": lambda ranks: (1, ranks),
    "usl": lambda ranks: (1, ranks - 1, ranks * (ranks - 1)),
}
LAW_OF: Final = {"strong": "amdahl", "weak": "gustafson"}  # kind of scaling -> its law

type Coefficients = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Law:
    """A law fitted to the medians of cases on several numbers of ranks."""

    name: str
    points: tuple[StoredCase, ...]

    @property
    def worst_residual(self) -> float:
        return max(abs(self.fps_at(world_size(one.case))[0] / one.frames_per_s - 1) for one in self.points)

    @property
    def serial_fraction(self) -> Estimate:
        return self._parameter(lambda found: found[0] / sum(found))

    @property
    def kappa(self) -> Estimate:
        return self._parameter(lambda found: found[2] / found[0] if found[0] else math.inf)

    @property
    def peak_ranks(self) -> float:
        """The number of ranks with the most throughput by the universal scalability law, at least 1."""
        one, sigma, kappa = _solved(self.name, self._ranks, [point.frames_per_s for point in self.points])
        if kappa == 0:
            return math.inf if sigma < one else 1.0
        return max(1.0, math.sqrt(max(0.0, one - sigma) / kappa))

    def fps_at(self, ranks: int) -> Estimate:
        terms = TERMS[self.name](ranks)
        return self._estimate(
            lambda found: _measured_or_fps(self.name, ranks, math.fsum(map(math.prod, zip(found, terms, strict=True)))),
            is_positive=True,
        )

    @property
    def _ranks(self) -> list[int]:
        return [world_size(one.case) for one in self.points]

    def _parameter(self, value: Callable[[Coefficients], float]) -> Estimate:
        """Return an estimate that is not below 0, and neither is its interval."""
        found, span = self._estimate(value, is_positive=False)
        return max(0.0, found), span and (max(0.0, span[0]), max(0.0, span[1]))

    def _estimate(self, value: Callable[[Coefficients], float], *, is_positive: bool) -> Estimate:
        def of_times(times_s: Sequence[float]) -> float:
            fps = [one.frames / time_s for one, time_s in zip(self.points, times_s, strict=True)]
            return value(_solved(self.name, self._ranks, fps))

        return estimate([one.published_s.values() for one in self.points], of_times, is_positive=is_positive)


def fitted(name: str, curve: Sequence[StoredCase], *, beyond: int = 1) -> Law | None:
    """Return the law; None where the points cannot support it.

    There have to be ``beyond`` more points than coefficients, the baseline among them, and none better than ideal.
    """
    points = tuple(one for one in curve if one.published_s)
    is_about = name == "usl" or LAW_OF[curve[0].case["scaling"]] == name
    if not is_about or not curve[0].published_s or len(points) < len(TERMS[name](1)) + beyond:
        return None
    each = [one.frames_per_s / world_size(one.case) for one in points]
    return None if max(each) / each[0] > SUPERLINEAR else Law(name=name, points=points)


def _measured_or_fps(name: str, ranks: int, value: float) -> float:
    """Return what the law is about, of frames per second; and the other way round."""
    return value if name == "gustafson" else (ranks if name == "usl" else 1) / value


def _solved(name: str, ranks: Sequence[int], fps: Sequence[float]) -> Coefficients:
    quantities = [_measured_or_fps(name, number, value) for number, value in zip(ranks, fps, strict=True)]
    rows = [
        [term / quantity for term in TERMS[name](number)] for number, quantity in zip(ranks, quantities, strict=True)
    ]
    size = len(rows[0])
    choices = (kept for number in range(1, size + 1) for kept in combinations(range(size), number))
    solutions = [_least_squares(rows, kept) for kept in choices]
    return min((one for one in solutions if min(one) >= 0), key=lambda one: _squared_error(rows, one))


def _squared_error(rows: Sequence[Sequence[float]], coefficients: Coefficients) -> float:
    return math.fsum((math.fsum(map(math.prod, zip(row, coefficients, strict=True))) - 1) ** 2 for row in rows)


def _least_squares(rows: Sequence[Sequence[float]], kept: Collection[int]) -> Coefficients:
    """Return the coefficients of these columns whose sum is nearest to 1 in every row; those of others are 0.

    By Gram and Schmidt: of each column the part that no earlier one has, and then back from the last to the first.
    """
    columns = {place: [row[place] for row in rows] for place in kept}
    own: dict[int, list[float]] = {}
    for place, column in columns.items():
        rest = column
        for other in own.values():
            share = _dot(rest, other) / _dot(other, other)
            rest = [value - share * before for value, before in zip(rest, other, strict=True)]
        own[place] = rest
    found = dict.fromkeys(range(len(rows[0])), 0.0)
    missing = [1.0] * len(rows)
    for place in reversed(columns):
        found[place] = _dot(missing, own[place]) / _dot(own[place], own[place])
        missing = [value - found[place] * part for value, part in zip(missing, columns[place], strict=True)]
    return tuple(found.values())


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(math.prod, zip(one, other, strict=True)))
