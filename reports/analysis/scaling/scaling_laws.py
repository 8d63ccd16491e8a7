"""Laws of scaling fitted to measured points: Amdahl, Gustafson, the universal scalability law, and Karp-Flatt. Pure.

Every law is linear in coefficients that cannot be negative (seconds and rates are not), so it is fitted by non-negative
least squares of the relative error. Intervals of parameters come from the model of the series, by fitting anew while
each point moves by its standard error. What the points cannot support is a ``NoFit`` with its reason: too few points,
none at the baseline, or points better than ideal.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from reports.analysis.scaling.scaling_groups import ScalingGroup, ScalingPoint
from suite.files.wording import counted
from suite.schema.record import Scaling
from suite.statistics.intervals import Estimate, estimate

# Beyond this no law here describes a point. The two per cent are for a baseline that was slightly disturbed; the noise
# of the rounds is in the intervals already.
SUPERLINEAR_EFFICIENCY: Final = 1.02
# A law that misses a measured point by more describes something else: its parameters mean nothing then.
MAX_RELATIVE_RESIDUAL: Final = 0.10
_ROUNDING: Final = 1e-9  # a coefficient that is smaller beside another is 0

type Law = Literal["amdahl", "gustafson", "usl"]
type Coefficients = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """``parameters`` by name; ``peak_world_size`` is infinite where throughput never falls."""

    law: Law
    parameters: Mapping[str, Estimate]
    world_sizes: tuple[int, ...]  # that it was fitted to
    worst_residual: float  # the largest relative error of throughput at a fitted point
    points: tuple[ScalingPoint, ...] = field(repr=False)

    @property
    def describes(self) -> bool:
        return self.worst_residual <= MAX_RELATIVE_RESIDUAL

    def total_fps(self, world_size: int) -> Estimate:
        """What the law says of ``world_size`` ranks, measured or not."""
        form = _FORMS[self.law]
        fps = _of_times(form, self.points, lambda coefficients: form.fps(world_size, coefficients))
        return estimate([point.times_s.values() for point in self.points], fps)


@dataclass(frozen=True)
class NoFit:
    reason: str


@dataclass(frozen=True, kw_only=True)
class KarpFlatt:
    """The serial fraction that explains one point by itself: rising with the ranks, it is overhead and not serial work.

    ``serial_fraction`` is None where ``reason`` says why.
    """

    world_size: int
    serial_fraction: Estimate | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class _Form:
    """target(N, fps) = sum of coefficients times basis(N). ``target`` is its own inverse in the second argument."""

    scaling: Scaling | None  # that the law is about; None for both
    target: Callable[[int, float], float]
    basis: Callable[[int], tuple[float, ...]]
    parameters: Mapping[str, Callable[[Coefficients], float]]

    def fps(self, world_size: int, coefficients: Coefficients) -> float:
        products = (a * b for a, b in zip(coefficients, self.basis(world_size), strict=True))
        return self.target(world_size, math.fsum(products))


def _serial_fraction(coefficients: Coefficients) -> float:
    return coefficients[0] / sum(coefficients)


def _kappa(coefficients: Coefficients) -> float:
    own, _, shared = coefficients
    return shared / own if own > _ROUNDING * shared else math.inf


def _peak_world_size(coefficients: Coefficients) -> float:
    """Where the universal scalability law has its most throughput: sqrt((1 - sigma) / kappa), at least 1."""
    one, sigma, kappa = coefficients
    if not kappa:
        return math.inf if sigma < one else 1.0
    return max(1.0, math.sqrt(max(0.0, one - sigma) / kappa))


_FORMS: Final[Mapping[Law, _Form]] = {
    # seconds per frame: a serial part, and one that is divided by the ranks
    "amdahl": _Form(
        scaling="strong",
        target=lambda _, fps: 1 / fps,
        basis=lambda n: (1.0, 1 / n),
        parameters={"serial_fraction": _serial_fraction},
    ),
    # frames per second: a part that stays as it is, and one that every rank adds to
    "gustafson": _Form(
        scaling="weak",
        target=lambda _, fps: fps,
        basis=lambda n: (1.0, n),
        parameters={"serial_fraction": _serial_fraction},
    ),
    # rank-seconds per frame: what one rank needs, contention (sigma), and every rank talking to every other (kappa)
    "usl": _Form(
        scaling=None,
        target=lambda n, value: n / value,
        basis=lambda n: (1.0, n - 1, n * (n - 1)),
        parameters={"kappa": _kappa, "peak_world_size": _peak_world_size},
    ),
}


def fit(law: Law, group: ScalingGroup, *, check_points: int = 1) -> Fit | NoFit:
    """Fit ``law``; ``check_points``: how many points it needs beyond its coefficients.

    With 0 the fit goes through every point and nothing says whether the law is right; only a prediction that is then
    compared with a measurement asks for that.
    """
    form = _FORMS[law]
    reason = _unfit(form, group, needed=len(form.basis(1)) + check_points)
    if reason is not None:
        return NoFit(reason)
    points = group.measured
    world_sizes = tuple(point.world_size for point in points)
    coefficients = _solved(form, world_sizes, [point.total_fps for point in points])
    return Fit(
        law=law,
        parameters={name: _parameter(form, group, value) for name, value in form.parameters.items()},
        world_sizes=world_sizes,
        worst_residual=max(abs(form.fps(p.world_size, coefficients) / p.total_fps - 1) for p in points),
        points=points,
    )


def _unfit(form: _Form, group: ScalingGroup, *, needed: int) -> str | None:
    """Why the points cannot support the law; None when they can."""
    if form.scaling not in {None, group.scaling}:
        return f"the law is about {form.scaling} scaling, and this is {group.scaling} scaling"
    if not group.baseline.times_s:
        return f"the baseline, {_ranks(group.baseline.world_size)}, has no completed round"
    if len(group.measured) < needed:
        sizes = ", ".join(str(point.world_size) for point in group.measured)
        return f"measured for {sizes} ranks only, and it needs {needed} different numbers of ranks"
    for point in group.measured:
        efficiency = point.total_fps / group.baseline.total_fps / (point.world_size / group.baseline.world_size)
        if efficiency > SUPERLINEAR_EFFICIENCY:
            return f"superlinear: {_ranks(point.world_size)} have an efficiency of {efficiency:.2f}"
    return None


def _solved(form: _Form, world_sizes: Sequence[int], fps: Sequence[float]) -> Coefficients:
    """Least squares of the relative error: every row is divided by its target, which then is 1.

    No coefficient is below 0: of all choices of terms whose least squares are not, the best one. SciPy has this too
    (``optimize.nnls``), and takes half a second to load.
    """
    targets = [form.target(n, value) for n, value in zip(world_sizes, fps, strict=True)]
    rows = np.array([form.basis(n) for n in world_sizes]) / np.array(targets)[:, None]
    scales = np.linalg.norm(rows, axis=0)  # the columns differ by orders of magnitude
    best = min(_allowed(rows / scales), key=lambda found: float(np.linalg.norm(rows / scales @ found - 1)))
    return tuple(float(value) for value in best / scales)


def _allowed(rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield the least squares of every choice of terms that has no coefficient below 0; the target is 1 everywhere."""
    terms = rows.shape[1]
    for choice in product((False, True), repeat=terms):
        if any(choice):
            chosen, found = np.array(choice), np.zeros(terms)
            found[chosen] = np.linalg.lstsq(rows[:, chosen], np.ones(len(rows)))[0]
            if (found >= 0).all():
                yield found


def _parameter(form: _Form, group: ScalingGroup, value: Callable[[Coefficients], float]) -> Estimate:
    """A parameter cannot be below 0, and neither can its interval. It does not depend on the unit of time."""
    points = group.measured
    found = group.model.estimate([point.case for point in points], _of_times(form, points, value), scale="linear")
    assert found is not None, "every measured point has a run"  # noqa: S101
    return found.mapped(lambda each: max(0.0, each))


def _of_times(
    form: _Form, points: Sequence[ScalingPoint], value: Callable[[Coefficients], float]
) -> Callable[[tuple[float, ...]], float]:
    """A function of the points' times of an iteration: the value of the coefficients that fit them."""
    world_sizes = [point.world_size for point in points]

    def of_times(times_s: tuple[float, ...]) -> float:
        fps = [point.frames_per_iteration / time_s for point, time_s in zip(points, times_s, strict=True)]
        return value(_solved(form, world_sizes, fps))

    return of_times


def karp_flatt(group: ScalingGroup) -> tuple[KarpFlatt, ...]:
    """(1/S - 1/p) / (1 - 1/p) of every point beyond the baseline, p times the baseline's ranks with speed-up S."""
    return tuple(_karp_flatt(group, point) for point in group.points[1:])


def _karp_flatt(group: ScalingGroup, point: ScalingPoint) -> KarpFlatt:
    reason: str | None = None
    ranks = point.world_size / group.baseline.world_size
    if group.scaling != "strong":
        reason = f"the metric is about strong scaling, and this is {group.scaling} scaling"
    elif not group.baseline.times_s:
        reason = f"the baseline, {_ranks(group.baseline.world_size)}, has no completed round"
    elif point.speedup is None:
        reason = "it has no completed round"
    elif (efficiency := point.speedup.value / ranks) > SUPERLINEAR_EFFICIENCY:
        reason = f"superlinear: an efficiency of {efficiency:.2f}"
    if reason is not None or point.speedup is None:
        return KarpFlatt(world_size=point.world_size, serial_fraction=None, reason=reason)
    fraction = point.speedup.mapped(lambda speedup: (1 / speedup - 1 / ranks) / (1 - 1 / ranks))
    return KarpFlatt(world_size=point.world_size, serial_fraction=fraction, reason=None)


def _ranks(world_size: int) -> str:
    return counted(world_size, "rank")
