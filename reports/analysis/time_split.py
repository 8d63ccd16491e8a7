"""What goes on inside the rounds of a case: three throughputs, where the time went, ranks, memory and energy. Pure.

A case's value is the median over its completed rounds, its spread the lowest and the highest of them. Throughputs
follow the rule of iteration times: the mean in a round, and the geometric mean over rounds. What was not measured is
None; nothing is 0 for want of a measurement.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

from suite.schema.record import CaseResult, RankRecord, RunRecord
from suite.schema.telemetry import Spread, TelemetrySummary
from suite.statistics.attribution import Attribution, attribution
from suite.statistics.core_speed import CoreSpeed, Host, core_speed, fastest_probes_s
from suite.statistics.intervals import mean_of
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s

type Kind = Literal["step", "step and inference", "total"]

# What is divided by: the rollout's environment steps, the whole rollout with the policy in it, the iteration.
KIND_COLUMNS: Final[Mapping[Kind, str]] = {
    "step": "environment_step_time_s",
    "step and inference": "collection_time_s",
    "total": "iteration_time_s",
}
type Part = str
PARTS: Final[Mapping[str, Part]] = {
    "simulate": "physics",
    "render": "rendering",
    "environment": "rest of steps",
    "infer": "inference",
    "other": "rest of rollout",
    "learn": "learning",
    "all_reduce": "all-reduce",
    "waiting": "waiting",
}


@dataclass(frozen=True, kw_only=True)
class Values:
    """Median over rounds, or geometric mean of throughputs, with the lowest and the highest round."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Inside:
    """One case; every value that was not measured is None or missing from its mapping."""

    fps: Mapping[Kind, Values]  # environment steps per second of all ranks
    shares: Mapping[Part, float]  # of the iteration time, mean over ranks and rounds; they add up to 1
    rank_ratios: tuple[Values, ...]  # iteration time of each rank over that of the median rank; empty for one rank
    peak_memory_gb: Values | None  # of the torch allocator, the rank with most
    gpu_memory_gb: Values | None  # in use on the GPU with most, whatever uses it
    gpu_utilisation_percent: Values | None  # time in which any kernel ran, mean over GPUs
    power_w: Values | None  # of all GPUs
    joules_per_million_frames: Values | None  # of all GPUs
    throttled_share: Values | None  # of the GPU with most
    core_probe_us: Values | None  # for a fixed piece of the interpreter's work on the slowest rank's core
    core_speed: CoreSpeed | None  # None where it was not probed, and for CPU ranks
    stolen_share: Values | None  # of the hosts' CPU time in use, what a hypervisor gave to others
    others_share: Values | None  # of the hosts' CPU time, what processes used that are not the run's
    sampler_core_share: Values | None  # of one core, what the sampling of the above cost; the busiest node's
    without_telemetry: tuple[str, ...]  # why rounds have none, each reason once


def inside(result: CaseResult, fastest_probe_s: Mapping[Host, float] | None = None) -> Inside:
    """``fastest_probe_s``: of its hosts, which other cases may have seen quicker; None takes what this one saw."""
    records = result.completed

    def over_rounds(value: Callable[[RunRecord], float | None]) -> Values | None:
        return _values(value(record) for record in records)

    def telemetry(value: Callable[[TelemetrySummary], float | None]) -> Values | None:
        return over_rounds(lambda record: None if record.telemetry is None else value(record.telemetry))

    fps = {kind: _rates(throughput(record, column) for record in records) for kind, column in _kinds(result)}
    return Inside(
        fps={kind: values for kind, values in fps.items() if values is not None},
        shares=part_shares(records),
        rank_ratios=_rank_ratios(records),
        peak_memory_gb=over_rounds(lambda record: max(_present(r.peak_memory_gb for r in record.ranks), default=None)),
        gpu_memory_gb=telemetry(lambda seen: max(of_gpus(seen, "memory_used_gb", "max"), default=None)),
        gpu_utilisation_percent=telemetry(lambda seen: _mean(of_gpus(seen, "sm_utilisation_percent", "mean"))),
        power_w=telemetry(lambda seen: None if seen.power_w is None else seen.power_w.mean),
        joules_per_million_frames=telemetry(
            lambda seen: 1e6 / seen.frames_per_joule if seen.frames_per_joule else None
        ),
        throttled_share=telemetry(lambda seen: max(_present(gpu.throttled_share for gpu in seen.gpus), default=None)),
        core_probe_us=over_rounds(core_probe_us),
        core_speed=core_speed(records, fastest_probes_s(records) if fastest_probe_s is None else fastest_probe_s),
        stolen_share=telemetry(lambda seen: seen.stolen_share),
        others_share=telemetry(
            lambda seen: None if seen.host_others_percent is None else seen.host_others_percent / 100
        ),
        sampler_core_share=telemetry(lambda seen: seen.sampler_cpu_share),
        without_telemetry=_without_telemetry(records),
    )


def _kinds(result: CaseResult) -> Iterable[tuple[Kind, str]]:
    """A control that only reduces gradients takes no environment step, so it has no throughput."""
    return KIND_COLUMNS.items() if result.case.has_frames else ()


def throughput(record: RunRecord, column: str) -> float | None:
    """Frames of all ranks over the mean time of the slowest rank in ``column``, in the iterations that have it.

    ``total`` is the headline of the round, also of several trainings on one GPU.
    """
    if column == KIND_COLUMNS["total"]:
        return record.case.frames_per_iteration / round_time_s(record)
    counted = marked_iterations(record) if column == KIND_COLUMNS["step"] else counted_iterations(record)
    columns = [samples_at(rank, column, counted) for rank in record.ranks]
    slowest = [max(times) for values in zip(*columns, strict=False) if len(times := _present(values)) == len(columns)]
    return record.case.frames_per_iteration / statistics.fmean(slowest) if slowest and min(slowest) > 0 else None


def samples_at(rank: RankRecord, column: str, iterations: Sequence[int]) -> list[float | None]:
    """Nothing for a column that was never measured."""
    stored = rank.samples.get(column, ())
    return [stored[iteration] for iteration in iterations if iteration < len(stored)]


def part_shares(records: Sequence[RunRecord]) -> dict[Part, float]:
    """Of the iteration time, mean over the ranks of these rounds; nothing where no split is known."""
    split = [part for record in records for part in _attribution(record)]
    if not split:
        return {}
    means = {
        name: statistics.fmean(values)
        for name in (field.name for field in fields(Attribution) if field.name != "rank")
        if len(values := _present(getattr(part, name) for part in split)) == len(split)
    }
    return {PARTS[name]: means[name] for name in PARTS if name in means}


def _attribution(record: RunRecord) -> tuple[Attribution, ...]:
    """Nothing for a round that misses a time that every split needs, as a control does."""
    try:
        return attribution(record)
    except ValueError:
        return ()


def _rank_ratios(records: Sequence[RunRecord]) -> tuple[Values, ...]:
    rounds: list[list[float]] = []
    for record in records:
        if len(record.ranks) < 2:  # noqa: PLR2004 - one rank has nothing to be compared with
            return ()
        counted = counted_iterations(record)
        own_s = [statistics.median(_present(samples_at(rank, "iteration_time_s", counted))) for rank in record.ranks]
        rounds.append([time_s / statistics.median(own_s) for time_s in own_s])
    return tuple(found for ratios in zip(*rounds, strict=False) if (found := _values(ratios)) is not None)


def core_probe_us(record: RunRecord) -> float | None:
    """Median over the marked iterations, of the rank where it is longest."""
    probed = (_present(samples_at(rank, "core_probe_time_s", marked_iterations(record))) for rank in record.ranks)
    return max((1e6 * statistics.median(times_s) for times_s in probed if times_s), default=None)


def of_gpus(seen: TelemetrySummary, name: str, statistic: str) -> list[float]:
    spreads: list[Spread | None] = [getattr(gpu, name) for gpu in seen.gpus]
    return [getattr(spread, statistic) for spread in spreads if spread is not None]


def _without_telemetry(records: Sequence[RunRecord]) -> tuple[str, ...]:
    reasons = (
        record.telemetry_note or "it was measured before labscale had a sampler"
        for record in records
        if record.telemetry is None
    )
    return tuple(dict.fromkeys(reasons))


def _values(values: Iterable[float | None]) -> Values | None:
    found = _present(values)
    return Values(median=statistics.median(found), low=min(found), high=max(found)) if found else None


def _rates(values: Iterable[float | None]) -> Values | None:
    found = _present(values)
    return Values(median=mean_of(found).value, low=min(found), high=max(found)) if found else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
