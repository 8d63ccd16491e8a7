"""How certain the throughput of each number of GPUs is, and the efficiency on the most GPUs. Pure.

The terminal shows this after a campaign of one task and library.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, Interval, mean_of
from suite.statistics.reduce import completed_times_s
from suite.statistics.series_model import SetModel


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of GPUs."""

    ranks: int
    rounds: int  # that completed
    fps: float  # environment steps a second of all ranks, mean over the rounds
    fps_interval: Interval | None  # None for too few rounds


@dataclass(frozen=True, kw_only=True)
class Sureness:
    points: tuple[Point, ...]  # by number of GPUs
    efficiency: float | None  # on the most GPUs against the fewest; None for one number of them
    efficiency_interval: Interval | None


def sureness(results: Sequence[CaseResult]) -> Sureness | None:
    """How certain a curve is. None if cases differ in more than their number of ranks, or none completed."""
    done = sorted((one for one in results if one.case.learns and one.completed), key=lambda one: one.case.world_size)
    curves = {(one.case.series, one.case.rl_library, one.case.stack, one.case.minibatch_rule) for one in done}
    sizes = [one.case.world_size for one in done]
    if len(curves) != 1 or len(set(sizes)) != len(sizes) or any(one.case.nnodes > 1 for one in done):
        return None
    found = _efficiency(done[0].case, done[-1].case, SetModel.of(results)) if len(done) > 1 else None
    return Sureness(
        points=tuple(map(_point, done)),
        efficiency=None if found is None else found.value,
        efficiency_interval=None if found is None else found.interval,
    )


def _point(result: CaseResult) -> Point:
    frames = result.case.frames_per_iteration
    fps = mean_of(completed_times_s(result.rounds)).mapped(lambda time_s: frames / time_s)
    return Point(
        ranks=result.case.world_size,
        rounds=len(result.completed),
        fps=fps.value,
        fps_interval=fps.interval,
    )


def _efficiency(fewest: Case, most: Case, model: SetModel) -> Estimate | None:
    """Throughput per rank relative to the case with the fewest ranks."""
    speedup = model.speedup(most, fewest)
    return speedup and speedup.mapped(lambda times: times * fewest.world_size / most.world_size)
