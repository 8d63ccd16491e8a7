"""Throughput of more ranks than were measured. Pure. Nothing here is a measurement, and its types say so.

A prediction comes from a law fitted to all measured points. How far such a prediction can be trusted is tried on what
is known: the law is fitted again without the largest point, and predicts it.
"""

from dataclasses import dataclass, replace

from reports.analysis.scaling.scaling_groups import ScalingGroup
from reports.analysis.scaling.scaling_laws import MAX_RELATIVE_RESIDUAL, Fit, Law, NoFit, fit
from suite.statistics.intervals import Estimate, mean_of


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The largest measured point, predicted from the others."""

    world_size: int
    predicted_fps: Estimate
    measured_fps: Estimate

    @property
    def relative_error(self) -> float:
        """Above 0: predicted faster than measured."""
        return self.predicted_fps.value / self.measured_fps.value - 1


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """``total_fps`` has an interval for the noise of the rounds only: that of the law itself is ``held_out``."""

    fitted: Fit
    world_size: int
    total_fps: Estimate
    held_out: HeldOut


def predict(law: Law, group: ScalingGroup) -> Prediction | NoFit:
    """Predict twice the largest number of ranks; refused where the law does not describe the points."""
    found = fit(law, group)
    if isinstance(found, NoFit):
        return found
    if found.worst_residual > MAX_RELATIVE_RESIDUAL:
        missed, allowed = found.worst_residual, MAX_RELATIVE_RESIDUAL
        return NoFit(f"the law misses a point by {missed:.0%}, and {allowed:.0%} is the most allowed")
    held_out = hold_out(law, group)
    if isinstance(held_out, NoFit):
        return held_out
    world_size = 2 * found.world_sizes[-1]
    return Prediction(fitted=found, world_size=world_size, total_fps=found.total_fps(world_size), held_out=held_out)


def hold_out(law: Law, group: ScalingGroup) -> HeldOut | NoFit:
    """Predict the largest measured point from the others, which may be as few as the law has coefficients."""
    if not group.measured:
        return NoFit("nothing was measured")
    largest = group.measured[-1]
    rest = replace(group, points=tuple(point for point in group.points if point.world_size < largest.world_size))
    found = fit(law, rest, check_points=0) if rest.points else NoFit("one number of ranks was measured")
    if isinstance(found, NoFit):
        return found
    return HeldOut(
        world_size=largest.world_size,
        predicted_fps=found.total_fps(largest.world_size),
        measured_fps=mean_of(largest.times_s.values()).mapped(lambda time_s: largest.frames_per_iteration / time_s),
    )
