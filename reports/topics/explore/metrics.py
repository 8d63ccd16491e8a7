"""The metrics that a reader can choose, and what each is computed from. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis.rows import CaseRow, case_times
from reports.analysis.start_ups import start_ups
from reports.analysis.time_to_reward import TimeToReward
from reports.display.html import count, ratio, seconds
from suite.schema.record import CaseResult
from suite.schema.telemetry import TelemetrySummary
from suite.statistics.intervals import Estimate, mean_of

type Sample = Literal["time", "energy", "memory", "start", "reward"]
type Samples = Mapping[Sample, Sequence[float]]  # one value of each run; a sample that nobody measured is missing

FRAMES: Final = 10**9
SECONDS_PER_HOUR: Final = 3600


@dataclass(frozen=True, kw_only=True)
class Metric:
    """``power``: 1 where the metric rises with its sample, -1 where it falls."""

    key: str  # in the address of a view
    name: str
    unit: str  # of the axis; empty for a ratio
    sample: Sample
    text: Callable[[float], str]
    power: Literal[1, -1] = 1

    @property
    def heading(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


def _percent(value: float) -> str:
    return f"{value:.1f}"


METRICS: Final = (
    Metric(key="fps", name="Frames per second", unit="", sample="time", text=count, power=-1),
    Metric(key="speedup", name="Speed-up", unit="", sample="time", text=ratio, power=-1),
    Metric(key="efficiency", name="Efficiency", unit="%", sample="time", text=_percent, power=-1),
    Metric(key="hours", name="Hours per billion frames", unit="", sample="time", text=seconds),
    Metric(key="gpu-hours", name="GPU-hours per billion frames", unit="", sample="time", text=seconds),
    Metric(key="energy", name="Energy per million frames", unit="J", sample="energy", text=seconds),
    Metric(key="memory", name="GPU memory", unit="GB", sample="memory", text=seconds),
    Metric(key="start", name="Warm start", unit="s", sample="start", text=seconds),
    Metric(key="reward", name="Time to the reward", unit="s", sample="reward", text=seconds),
)
# Metrics that compare a point with its baseline.
OVER_BASELINE: Final = ("speedup", "efficiency")


def samples_of(result: CaseResult, to_reward: TimeToReward | None) -> Samples:
    """What each completed run of a case says, by sample."""
    summaries = [record.telemetry for record in result.completed if record.telemetry is not None]
    found: dict[Sample, list[float]] = {
        "time": list(case_times(result).values()),
        "energy": [1e6 / seen.frames_per_joule for seen in summaries if seen.frames_per_joule],
        "memory": [] if has_neighbours(result) else [gb for seen in summaries if (gb := _memory_gb(seen))],
        "start": [start.total_s for start in start_ups(result).by_kind.get("warm", ())],
        "reward": _all_reached(to_reward),
    }
    return {name: values for name, values in found.items() if values}


def has_neighbours(result: CaseResult) -> bool:
    """Whether env_check found processes of others on the GPUs before a run."""
    checks = (check for record in result.completed for check in record.environment.checks)
    return any((check.name, check.verdict) == ("other_processes", "warning") for check in checks)


def _memory_gb(seen: TelemetrySummary) -> float | None:
    """In use on the GPU with most."""
    return max((gpu.memory_used_gb.max for gpu in seen.gpus if gpu.memory_used_gb is not None), default=None)


def _all_reached(time: TimeToReward | None) -> list[float]:
    """Seconds of every run; nothing where one of them ended before it had the reward."""
    times_s = [] if time is None else list(time.round_times_s.values())
    reached = [time_s for time_s in times_s if time_s is not None]
    return reached if len(reached) == len(times_s) else []


def figures_of(result: CaseResult, row: CaseRow, samples: Samples, *, scales: bool) -> dict[str, Estimate]:
    """Return each metric that is known, by its key. ``scales``: its curve has several numbers of GPUs."""
    frames = result.case.frames_per_iteration
    gpus = result.case.world_size
    time_s = mean_of(samples["time"])
    found = {"fps": time_s.mapped(lambda value: frames / value)}
    if result.case.learns:
        hours = time_s.mapped(lambda value: FRAMES / frames * value / SECONDS_PER_HOUR)
        found |= {"hours": hours, "gpu-hours": hours.mapped(lambda value: gpus * value)}
    if scales and row.speedup is not None and row.scaling_efficiency is not None:
        efficiency = Estimate(value=row.scaling_efficiency, interval=row.scaling_efficiency_interval)
        found["speedup"] = Estimate(value=row.speedup, interval=row.speedup_interval)
        found["efficiency"] = efficiency.mapped(lambda value: 100 * value)
    alone: tuple[Sample, ...] = ("energy", "memory", "start", "reward")
    return found | {name: mean_of(samples[name]) for name in alone if name in samples}
