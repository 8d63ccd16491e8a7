"""How long an iteration of N ranks lasts, by its parts, from the measurements of one curve. Pure.

    own(N) (1 + lag(N)) + calls(N) (overhead + all-reduce(N))

- own: the work of the median rank. Under weak scaling what it took at the largest measured count, since a rank's work
  does not change; under strong scaling Amdahl's law fitted to the measured counts.
- lag: of the slowest of N ranks (``reports.stragglers``).
- calls: of all-reduce in an iteration, which follow from the optimiser steps.
- overhead: what a call took beyond the hops of ``reports.collectives`` at the largest measured count of one node.
- all-reduce: by ring or tree over the assumed links (``reports.interconnects``). Where the gradient's size is not
  stored it has no bytes, only hops, so the throughput is the most that can be.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.collectives import Bound, Links, all_reduce_s
from reports.resampling import Estimate, estimate
from reports.scaling_groups import ScalingGroup, ScalingPoint, optimiser_steps_of, steps_follow_a_rule
from reports.scaling_laws import Fit, NoFit, fit
from reports.stragglers import MIN_LAGS, Lags, lags_of
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.reduce import marked_iterations

type Network = Mapping[Bound, Links]
type Results = Mapping[str, CaseResult]  # by case id


@dataclass(frozen=True, kw_only=True)
class NotCarried:
    """Why a curve says nothing of more GPUs."""

    group: ScalingGroup
    reason: str


@dataclass(frozen=True, kw_only=True)
class Model:
    """What one curve's measurements say of an iteration's parts."""

    group: ScalingGroup
    largest: Case  # of the measured ones
    own: Fit | Estimate  # strong scaling: its law; weak scaling: seconds
    lags: Lags
    calls_per_step: float  # of all-reduce, for each optimiser step
    calls_beside: float  # in an iteration, however many steps it has
    overhead_s: float  # of a call
    gradient_bytes: float | None  # of a rank; None where it is not stored

    def own_s(self, world_size: int, bound: Bound = "expected") -> float:
        if isinstance(self.own, Estimate):
            return _at(self.own, bound)
        fps = self.own.total_fps(world_size)
        times_s = fps.interval and (1 / fps.interval[1], 1 / fps.interval[0])
        return self.frames(world_size) * _at(Estimate(value=1 / fps.value, interval=times_s), bound)

    def calls(self, world_size: int) -> float:
        return self.calls_beside + self.calls_per_step * optimiser_steps_of(self.group, world_size)

    def all_reduce_s(self, world_size: int, links: Links) -> float:
        """In an iteration; nothing for one rank, nor where nothing is learned from."""
        calls = self.calls(world_size)
        if world_size == 1 or not calls:
            return 0.0
        volume = optimiser_steps_of(self.group, world_size) * (self.gradient_bytes or 0.0)
        return calls * (self.overhead_s + all_reduce_s(world_size, volume / calls, links))

    @property
    def has_noise(self) -> bool:
        """Whether the band holds the noise of rounds; that takes several of every count that ``own`` rests on."""
        return (self.own.resampled if isinstance(self.own, Fit) else self.own.interval) is not None

    def frames(self, world_size: int) -> float:
        """Of an iteration."""
        base = self.group.baseline
        return base.frames_per_iteration * (world_size / base.world_size if self.group.scaling == "weak" else 1)

    def time_s(self, world_size: int, network: Network, bound: Bound = "expected") -> float:
        lag = self.lags.largest_of(world_size, bound)
        return self.own_s(world_size, bound) * (1 + lag) + self.all_reduce_s(world_size, network[bound])

    def total_fps(self, world_size: int, network: Network, bound: Bound = "expected") -> float:
        return self.frames(world_size) / self.time_s(world_size, network, bound)


def model_of(group: ScalingGroup, results: Results, gradients: Mapping[tuple[str, str], float]) -> Model | NotCarried:
    """``gradients`` as ``gradient_sizes`` gives them."""
    reason = _unfit(group, results)
    if reason is not None:
        return NotCarried(group=group, reason=reason)
    measured = group.measured
    largest = results[measured[-1].case_id]
    lags = {point.world_size: lags_of(results[point.case_id]) for point in measured if point.world_size > 1}
    last_lags = lags[measured[-1].world_size]
    if last_lags is None:
        return NotCarried(group=group, reason=_few_lags(measured[-1].world_size))
    typical = replace(group, points=tuple(_of_median_rank(point, lags.get(point.world_size)) for point in measured))
    own = _own(typical)
    if isinstance(own, NoFit):
        return NotCarried(group=group, reason=own.reason)
    if isinstance(own, Fit) and not own.describes:
        return NotCarried(
            group=group, reason=f"{own.law.capitalize()}'s law misses a count by {own.worst_residual:.0%}"
        )
    calls_per_step, calls_beside = _calls(measured, results)
    return Model(
        group=group,
        largest=largest.case,
        own=own,
        lags=last_lags,
        calls_per_step=calls_per_step,
        calls_beside=calls_beside,
        overhead_s=0.0,
        gradient_bytes=gradients.get((largest.case.task, largest.case.rl_library)),
    )


def calibrated(model: Model, results: Results, links: Links) -> Model:
    """With the overhead of a call at the largest measured count of one node, beyond what ``links`` explain.

    Without a count of several ranks on one node there is none.
    """
    of_one_node = [p for p in model.group.measured if p.world_size > 1 and results[p.case_id].case.nnodes == 1]
    if not of_one_node:
        return model
    point = of_one_node[-1]
    calls = model.calls(point.world_size)
    if not calls:
        return model
    beyond_s = statistics.median(point.all_reduce_s.values()) - model.all_reduce_s(point.world_size, links)
    return replace(model, overhead_s=max(0.0, beyond_s / calls))


def gradient_sizes(results: Iterable[CaseResult]) -> dict[tuple[str, str], float]:
    """Task and library -> bytes of a rank's gradient: what it gives into the all-reduces of an optimiser step.

    From training and from the controls that reduce nothing else. A library's agent of a task has one network, so one
    size; one with another would be another agent.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for result in results:
        case = result.case
        for record in result.completed:
            samples = record.ranks[0].samples
            sizes = [size / case.optimiser_steps for size in samples.get("all_reduce_bytes", ()) if size]
            found.setdefault((case.task, case.rl_library), []).extend(sizes)
    return {agent: statistics.median(sizes) for agent, sizes in found.items() if sizes}


def _unfit(group: ScalingGroup, results: Results) -> str | None:
    """Why the measurements do not support a model; None when they do."""
    if not group.baseline.times_s:
        return "its smallest count has no completed round"
    if results[group.baseline.case_id].case.device != "cuda":
        return "it ran on CPU cores, and the networks assumed here are between GPUs"
    measured = group.measured
    several = [point for point in measured if point.world_size > 1]
    if len(measured) == 1 or not several:
        return f"one count was measured, {measured[0].world_size}; nothing is known of how it changes"
    without = [str(point.world_size) for point in several if point.times_s.keys() - point.all_reduce_s.keys()]
    if without:
        return f"all-reduce was not timed at {', '.join(without)} GPUs"
    if not steps_follow_a_rule(group):
        return "the optimiser steps of an iteration are neither the same for every number of ranks nor divided by it"
    return None


def _few_lags(world_size: int) -> str:
    return (
        f"at {world_size} GPUs fewer than {MIN_LAGS} times of ranks are steady and have their all-reduce timed, too few"
        " to tell how ranks lag"
    )


def _of_median_rank(point: ScalingPoint, lags: Lags | None) -> ScalingPoint:
    """Without all-reduce and without the lag of the slowest rank; where no lags are known they are left in."""
    lag = 0.0 if lags is None else lags.largest_of(point.world_size)
    own = {
        number: (time_s - point.all_reduce_s.get(number, 0.0)) / (1 + lag) for number, time_s in point.times_s.items()
    }
    return replace(point, times_s=own, all_reduce_s={})


def _own(typical: ScalingGroup) -> Fit | NoFit | Estimate:
    """A law needs as many counts as it has coefficients; held-out counts say whether it is right."""
    if typical.scaling == "weak":
        return estimate([typical.measured[-1].times_s], lambda medians: medians[0], "unpaired")
    return fit("amdahl", typical, check_points=0)


def _calls(measured: Sequence[ScalingPoint], results: Results) -> tuple[float, float]:
    """All-reduces for each optimiser step, and those beside, by least squares over the measured counts."""
    several = [point for point in measured if point.world_size > 1]
    counted = [(float(point.optimiser_steps), _calls_of(results[point.case_id])) for point in several]
    pairs = [(steps, calls) for steps, calls in counted if calls is not None]
    if not pairs:  # timed, and not counted: one for each step is the least there can be
        return 1.0, 0.0
    if len({steps for steps, _ in pairs}) == 1:
        return statistics.median(calls for _, calls in pairs) / pairs[0][0], 0.0
    line = statistics.linear_regression([steps for steps, _ in pairs], [calls for _, calls in pairs])
    if line.intercept < 0 or line.slope < 0:
        return statistics.median(calls / steps for steps, calls in pairs), 0.0
    return line.slope, line.intercept


def _calls_of(result: CaseResult) -> float | None:
    found = [calls for record in result.completed for calls in _calls_of_round(record)]
    return statistics.median(found) if found else None


def _calls_of_round(record: RunRecord) -> list[float]:
    column = record.ranks[0].samples.get("all_reduce_calls", ())
    return [calls for index in marked_iterations(record) if index < len(column) and (calls := column[index])]


def _at(value: Estimate, bound: Bound) -> float:
    if value.interval is None or bound == "expected":
        return value.value
    return value.interval[0 if bound == "low" else 1]
