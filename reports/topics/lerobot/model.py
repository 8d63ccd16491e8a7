"""What LeRobot does in Isaac Lab's environments: how fast its policy acts, and how fast it writes a data set. Pure.

A run's figure is the median over its steady iterations, and a case's is the median over its runs. Latencies are of
iterations with marks, where single calls were timed; everything else is of those without.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate, median_of
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s


@dataclass(frozen=True, kw_only=True)
class Acting:
    """One case of a policy that acts; figures are None if no run completed, latencies if no call was timed too."""

    result: CaseResult
    fps: Estimate | None  # environment steps a second, with the choice of their actions
    latency_s: Estimate | None  # of one choice of the actions of all environments
    rare_latency_s: Estimate | None  # that 99 % of the calls keep to

    @property
    def case(self) -> Case:
        return self.result.case


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One case whose frames LeRobot wrote; figures are None if no run completed."""

    result: CaseResult
    fps: Estimate | None  # frames a second, simulated and written
    written_fps: Estimate | None  # frames a second while it writes
    bytes_per_frame: Estimate | None  # on disk

    @property
    def case(self) -> Case:
        return self.result.case


def acting(results: Sequence[CaseResult]) -> tuple[Acting, ...]:
    """Return every case of a policy that acts, with the fewest environments first."""
    return tuple(
        Acting(
            result=result,
            fps=_fps(result, round_time_s),
            latency_s=_known(result, lambda record: _median(record, "lerobot.latency_median_s", marked_iterations)),
            rare_latency_s=_known(result, lambda record: _median(record, "lerobot.latency_p99_s", marked_iterations)),
        )
        for result in _by_size(results)
        if result.case.workload == "policy_rollout"
    )


def recordings(results: Sequence[CaseResult]) -> tuple[Recording, ...]:
    """Return every case that LeRobot recorded, with the fewest environments first."""
    return tuple(
        Recording(
            result=result,
            fps=_fps(result, round_time_s),
            written_fps=_fps(result, lambda record: _median(record, "lerobot.written_time_s", counted_iterations)),
            bytes_per_frame=_known(
                result, lambda record: _median(record, "lerobot.bytes_per_frame", counted_iterations)
            ),
        )
        for result in _by_size(results)
        if result.case.workload == "dataset_recording"
    )


def _by_size(results: Sequence[CaseResult]) -> list[CaseResult]:
    return sorted(results, key=lambda result: result.case.num_envs)


def most_acting(found: Sequence[Acting]) -> Acting | None:
    """Return the case that makes the most frames; None if none completed."""
    return max((each for each in found if each.fps), key=lambda each: each.fps.value if each.fps else 0.0, default=None)


def most_written(found: Sequence[Recording]) -> Recording | None:
    """Return the case that writes the most frames; None if none completed."""
    known = (each for each in found if each.written_fps)
    return max(known, key=lambda each: each.written_fps.value if each.written_fps else 0.0, default=None)


def _fps(result: CaseResult, time_s: Callable[[RunRecord], float | None]) -> Estimate | None:
    known_s = _known(result, time_s)
    return known_s and known_s.mapped(lambda value: result.case.frames_per_iteration / value)


def _known(result: CaseResult, figure: Callable[[RunRecord], float | None]) -> Estimate | None:
    """Return the median over the completed runs that have the figure."""
    values = [value for record in result.completed if (value := figure(record)) is not None]
    return median_of(values) if values else None


def _median(record: RunRecord, column: str, of: Callable[[RunRecord], Sequence[int]]) -> float | None:
    samples = record.ranks[0].samples[column]
    values = [value for iteration in of(record) if (value := samples[iteration]) is not None]
    return statistics.median(values) if values else None
