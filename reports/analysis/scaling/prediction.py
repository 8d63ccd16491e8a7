"""Throughput of more ranks than were measured. Pure. Nothing here is a measurement, and its types say so.

A prediction comes from a law fitted to all measured points. How far such a prediction can be trusted is tried on what
is known: the law is fitted again without the largest point, and predicts it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from reports.analysis.scaling.scaling_groups import ScalingGroup
from reports.analysis.scaling.scaling_laws import MAX_RELATIVE_RESIDUAL, Law, NoFit, fit
from suite.files.wording import counted
from suite.statistics.intervals import Estimate, median_of

# Twice the ranks is what holding out the largest point tries; one doubling more is the most that is worth saying.
MAX_EXTRAPOLATION: Final = 4


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The largest measured point, predicted from the others."""

    world_size: int
    fitted_to: tuple[int, ...]  # numbers of ranks
    predicted_fps: Estimate
    measured_fps: Estimate

    @property
    def relative_error(self) -> float:
        """Above 0: predicted faster than measured."""
        return self.predicted_fps.value / self.measured_fps.value - 1


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """``total_fps`` has an interval for the noise of the rounds only: that of the law itself is ``held_out``."""

    law: Law
    world_size: int
    total_fps: Estimate
    fitted_to: tuple[int, ...]  # numbers of ranks
    held_out: HeldOut
    is_prediction: Literal[True] = True

    @property
    def label(self) -> str:
        """As it has to be shown."""
        largest = self.fitted_to[-1]
        return (
            f"prediction for {self.world_size} ranks by {self.law} from at most {largest}; for {largest} it was off by"
            f" {self.held_out.relative_error:+.1%}"
        )


@dataclass(frozen=True, kw_only=True)
class NoPrediction:
    law: Law
    world_size: int | None  # None: of the largest measured point
    reason: str


def predict(law: Law, group: ScalingGroup, world_size: int) -> Prediction | NoPrediction:
    """Refused for what was measured, for what is too far from it, and where the law does not describe the points."""
    found = fit(law, group)
    if isinstance(found, NoFit):
        return NoPrediction(law=law, world_size=world_size, reason=found.reason)
    reason = _unpredictable(found.world_sizes, found.worst_residual, world_size)
    if reason is not None:
        return NoPrediction(law=law, world_size=world_size, reason=reason)
    validation = hold_out(law, group)
    if isinstance(validation, NoPrediction):
        return replace(validation, world_size=world_size)
    return Prediction(
        law=law,
        world_size=world_size,
        total_fps=found.total_fps(world_size),
        fitted_to=found.world_sizes,
        held_out=validation,
    )


def _unpredictable(fitted_to: Sequence[int], worst_residual: float, world_size: int) -> str | None:
    """Why a fit says nothing of ``world_size`` ranks; None when it does."""
    largest = fitted_to[-1]
    if world_size <= largest:
        return f"{counted(largest, 'rank')} {'was' if largest == 1 else 'were'} measured; a prediction is for more"
    if world_size > MAX_EXTRAPOLATION * largest:
        return f"it is more than {MAX_EXTRAPOLATION} times what was measured, {counted(largest, 'rank')}"
    if worst_residual > MAX_RELATIVE_RESIDUAL:
        return f"the law misses a point by {worst_residual:.0%}, and {MAX_RELATIVE_RESIDUAL:.0%} is the most allowed"
    return None


def hold_out(law: Law, group: ScalingGroup) -> HeldOut | NoPrediction:
    """Predict the largest measured point from the others, which may be as few as the law has coefficients."""
    if not group.measured:
        return NoPrediction(law=law, world_size=None, reason="nothing was measured")
    largest = group.measured[-1]
    rest = replace(group, points=tuple(point for point in group.points if point.world_size < largest.world_size))
    found = fit(law, rest, check_points=0) if rest.points else NoFit(law=law, reason="one number of ranks was measured")
    if isinstance(found, NoFit):
        return NoPrediction(law=law, world_size=None, reason=found.reason)
    return HeldOut(
        world_size=largest.world_size,
        fitted_to=found.world_sizes,
        predicted_fps=found.total_fps(largest.world_size),
        measured_fps=median_of(largest.times_s.values()).mapped(lambda time_s: largest.frames_per_iteration / time_s),
    )
