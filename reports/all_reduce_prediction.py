"""Throughput of more ranks than were measured, where what all-reduce costs was measured apart. Pure.

The time in all-reduce is taken out of every point, a law is fitted to the rest, and a ring to what was taken out. So
communication grows as a ring's does, and not as the law would have it.
"""

import statistics
from dataclasses import dataclass, replace
from typing import Final

from reports.all_reduce import AllReduceSample, NoRing, RingAllReduce, fit_ring
from reports.prediction import HeldOut, NoPrediction, Prediction, unpredictable
from reports.resampling import Estimate, estimate
from reports.scaling_groups import ScalingGroup, ScalingPoint
from reports.scaling_laws import Fit, Law, NoFit, fit

NO_RULE: Final = "the optimiser steps of an iteration are neither the same for every number of ranks nor divided by it"

# Sizes of messages are not recorded. They are the same for every number of ranks, so one is the unit.
_ONE_MESSAGE = 1.0


@dataclass(frozen=True, kw_only=True)
class _Model:
    group: ScalingGroup
    rest: Fit
    ring: RingAllReduce

    def total_fps(self, world_size: int) -> float:
        baseline = self.group.baseline
        ratio = world_size / baseline.world_size if self.group.scaling == "weak" else 1
        frames = baseline.frames_per_iteration * ratio
        all_reduce_s = optimiser_steps_of(self.group, world_size) * self.ring.time_s(world_size, _ONE_MESSAGE)
        return frames / (frames / self.rest.total_fps(world_size).value + all_reduce_s)

    @property
    def worst_residual(self) -> float:
        return max(abs(self.total_fps(point.world_size) / point.total_fps - 1) for point in self.group.measured)


def predict_with_all_reduce(law: Law, group: ScalingGroup, world_size: int) -> Prediction | NoPrediction:
    """Refused as by ``reports.prediction.predict``, and where all-reduce was measured for too few numbers of ranks.

    The prediction has no interval: the noise of two fits to parts of one time does not simply add up.
    """
    model = _model(law, group, check_points=1)
    if isinstance(model, str):
        return NoPrediction(law=law, world_size=world_size, reason=model)
    reason = unpredictable(model.rest.world_sizes, model.worst_residual, world_size)
    if reason is not None:
        return NoPrediction(law=law, world_size=world_size, reason=reason)
    largest = group.measured[-1]
    known = replace(group, points=tuple(point for point in group.points if point.world_size < largest.world_size))
    validation = _model(law, known, check_points=0)
    if isinstance(validation, str):
        return NoPrediction(law=law, world_size=world_size, reason=validation)
    return Prediction(
        law=law,
        world_size=world_size,
        total_fps=Estimate(value=model.total_fps(world_size), interval=None),
        fitted_to=model.rest.world_sizes,
        with_all_reduce=True,
        held_out=HeldOut(
            world_size=largest.world_size,
            fitted_to=validation.rest.world_sizes,
            predicted_fps=Estimate(value=validation.total_fps(largest.world_size), interval=None),
            measured_fps=estimate(
                [largest.times_s], lambda medians: largest.frames_per_iteration / medians[0], "unpaired"
            ),
        ),
    )


def _model(law: Law, group: ScalingGroup, *, check_points: int) -> _Model | str:
    """The fitted model, or why there is none."""
    if not steps_follow_a_rule(group):
        return NO_RULE
    several = [point for point in group.measured if point.world_size > 1]
    without = [str(point.world_size) for point in several if point.times_s.keys() - point.all_reduce_s.keys()]
    if without:
        return f"all-reduce was not measured for {', '.join(without)} ranks"
    rest = fit(law, replace(group, points=tuple(map(_without_all_reduce, group.points))), check_points=check_points)
    if isinstance(rest, NoFit):
        return rest.reason
    ring = fit_ring([_sample(point) for point in several], check_points=check_points)
    return ring.reason if isinstance(ring, NoRing) else _Model(group=group, rest=rest, ring=ring)


def _without_all_reduce(point: ScalingPoint) -> ScalingPoint:
    """One rank has none to take out."""
    rest_s = {number: time_s - point.all_reduce_s.get(number, 0.0) for number, time_s in point.times_s.items()}
    return replace(point, times_s=rest_s)


def _sample(point: ScalingPoint) -> AllReduceSample:
    time_s = statistics.median(point.all_reduce_s.values()) / point.optimiser_steps
    return AllReduceSample(world_size=point.world_size, message_bytes=_ONE_MESSAGE, time_s=time_s)


def steps_follow_a_rule(group: ScalingGroup) -> bool:
    """Whether the optimiser steps of an iteration are the same for every number of ranks, or divided by it."""
    same = {point.optimiser_steps for point in group.points}
    divided = {point.optimiser_steps * point.world_size for point in group.points}
    return 1 in {len(same), len(divided)}


def optimiser_steps_of(group: ScalingGroup, world_size: int) -> float:
    """Of an iteration, by the rule that the group's cases follow."""
    baseline = group.baseline
    if len({point.optimiser_steps for point in group.points}) == 1:
        return baseline.optimiser_steps
    return baseline.optimiser_steps * baseline.world_size / world_size
