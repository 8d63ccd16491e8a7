"""Throughput of GPUs that nobody had, up to ``MAX_GPUS``, under stated interconnects. Pure. Nothing here is measured.

The parts of an iteration are those of ``reports.iteration_model``. ``low`` and ``high`` are of its time: latencies,
lags, and where there are rounds enough the interval of ``own``. The band of a prediction is nowhere narrower than what
the model missed the largest measured count by.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from reports.collectives import Bound, Links
from reports.iteration_model import Model, Network, NotCarried, Results, calibrated, model_of
from reports.scaling_groups import ScalingGroup
from suite.schema.record import Case
from suite.statistics.aa_noise import apart

MAX_GPUS: Final = 1024
# Added GPUs that give less than half of what as many first ones gave are better spent on another experiment.
WORTH: Final = 0.5
BOUNDS: Final[tuple[Bound, ...]] = ("low", "expected", "high")
FREE: Final = Links(
    gpus_per_node=1,
    ring_within_s=0.0,
    tree_within_s=0.0,
    within_bytes_per_s=math.inf,
    ring_between_s=0.0,
    tree_between_s=0.0,
    between_bytes_per_s=math.inf,
)


@dataclass(frozen=True, kw_only=True)
class PredictedPoint:
    """``low`` and ``high`` are of the throughput."""

    world_size: int
    total_fps: float
    low: float
    high: float
    efficiency: float
    efficiency_low: float
    efficiency_high: float
    is_prediction: Literal[True] = True


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The first count whose added GPUs give less than ``WORTH`` of the first ones; ``gain`` is what they give."""

    world_size: int
    gain: float
    is_prediction: bool


@dataclass(frozen=True, kw_only=True)
class Carried:
    """A curve over one network. ``stops`` is None where every doubling pays, at that end of the band."""

    network: str
    points: tuple[PredictedPoint, ...]
    stops: Mapping[Bound, Stop | None]  # by the bound of the time
    ended_because: str | None  # why there are no points up to ``MAX_GPUS``


@dataclass(frozen=True, kw_only=True)
class HeldOutCount:
    """The largest measured count, predicted from the others."""

    world_size: int
    fitted_to: tuple[int, ...]
    predicted_fps: Mapping[Bound, float]  # by the bound of the time
    measured_fps: float

    @property
    def relative_error(self) -> float:
        """Above 0: predicted faster than measured."""
        return self.predicted_fps["expected"] / self.measured_fps - 1

    @property
    def miss(self) -> float:
        """By how much the larger of the two exceeds the smaller, relative: 1 for twice as fast and for half."""
        return apart(self.relative_error)

    @property
    def is_in_band(self) -> bool:
        return self.predicted_fps["high"] <= self.measured_fps <= self.predicted_fps["low"]


def carry(model: Model, name: str, network: Network, *, miss: float = 0.0) -> Carried:
    """From the largest measured count by doublings, as far as the work can be cut.

    ``miss``: how far off the model was where it could be checked, see ``HeldOutCount.miss``; the band is nowhere
    narrower.
    """
    group = model.group
    points: list[PredictedPoint] = []
    ended_because = None
    world_size = 2 * group.measured[-1].world_size
    while world_size <= MAX_GPUS and ended_because is None:
        ended_because = uncuttable(model.largest, world_size)
        if ended_because is None:
            points.append(_predicted(model, world_size, network, miss))
        world_size *= 2
    ends = {
        "low": [point.high for point in points],  # the least time is the most throughput
        "expected": [point.total_fps for point in points],
        "high": [point.low for point in points],
    }
    counts = [point.world_size for point in points]
    return Carried(
        network=name,
        points=tuple(points),
        stops={bound: stop(group, list(zip(counts, ends[bound], strict=True))) for bound in BOUNDS},
        ended_because=ended_because,
    )


def _predicted(model: Model, world_size: int, network: Network, miss: float) -> PredictedPoint:
    base = model.group.baseline
    ideal = base.total_fps * world_size / base.world_size
    fps = model.total_fps(world_size, network)
    low = min(model.total_fps(world_size, network, "high"), fps / (1 + miss))
    high = max(model.total_fps(world_size, network, "low"), fps * (1 + miss))
    return PredictedPoint(
        world_size=world_size,
        total_fps=fps,
        low=low,
        high=high,
        efficiency=fps / ideal,
        efficiency_low=low / ideal,
        efficiency_high=high / ideal,
    )


def hold_out(
    group: ScalingGroup, results: Results, gradients: Mapping[tuple[str, str], float], network: Network
) -> HeldOutCount | NotCarried:
    """The largest measured count predicted by a model of the others."""
    largest = group.measured[-1] if group.measured else None
    if largest is None or len(group.measured) == 1:
        return NotCarried(group=group, reason="one count was measured, so none can be held out")
    rest = replace(group, points=tuple(point for point in group.points if point.world_size < largest.world_size))
    if len(rest.measured) == 1:
        reason = f"without its largest count, {largest.world_size}, one is left, which does not say how it changes"
        return NotCarried(group=group, reason=reason)
    found = model_of(rest, results, gradients)
    if isinstance(found, NotCarried):
        return replace(found, group=group)
    model = calibrated(found, results, network["expected"])
    return HeldOutCount(
        world_size=largest.world_size,
        fitted_to=tuple(point.world_size for point in rest.measured),
        predicted_fps={bound: model.total_fps(largest.world_size, network, bound) for bound in BOUNDS},
        measured_fps=largest.total_fps,
    )


def stop(group: ScalingGroup, predicted: Sequence[tuple[int, float]]) -> Stop | None:
    """By ``WORTH``, over the measured counts and then the predicted ones."""
    base = group.baseline
    one_gpu_fps = base.total_fps / base.world_size
    known = [(point.world_size, point.total_fps) for point in group.measured]
    counts = [*known, *predicted]
    for (fewer, fps), (more, more_fps) in pairwise(counts):
        gain = (more_fps - fps) / (more - fewer) / one_gpu_fps
        if gain < WORTH:
            return Stop(world_size=more, gain=gain, is_prediction=more > known[-1][0])
    return None


def uncuttable(case: Case, world_size: int) -> str | None:
    """Why the work of ``case`` cannot be cut for ``world_size`` ranks by its own rules; None when it can.

    A weak series has as much work on every rank, whatever their number.
    """
    if case.scaling == "weak":
        return None
    if case.num_envs_global % world_size:
        return f"{case.num_envs_global} environments do not divide by {world_size} GPUs"
    batch = case.num_envs_global // world_size * case.num_steps_per_env
    minibatches = max(1, case.num_envs * case.num_steps_per_env // case.minibatch_size)
    if case.minibatch_rule == "fixed_minibatch" and batch % case.minibatch_size:
        return f"with {world_size} GPUs a rank collects {batch} samples, and a minibatch has {case.minibatch_size}"
    if case.minibatch_rule == "fixed_updates" and batch % minibatches:
        return f"with {world_size} GPUs a rank collects {batch} samples, which make no {minibatches} minibatches"
    return None
