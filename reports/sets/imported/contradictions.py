"""What a bundle's fields say against each other. Pure.

Isaac Lab computes all of them from the same iterations, so a figure that was edited, or that is of another run, no
longer fits the others.
"""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from reports.sets.imported.bundle import Bundle, EnvironmentStepTiming, MeanStd, Part

PEAK_SLACK: Final = 1e-6
SUM_TOLERANCE: Final = 1e-6
CLOCK_SLACK_S: Final = 1e-3
RATE_SLACK_FPS: Final = 1.0  # rsl_rl rounds its frames per second down
RANK_FIELDS: Final = ("world_size", "local_world_size", "num_nodes", "num_envs_per_rank")


def contradictions(bundle: Bundle) -> Iterator[str]:
    """One sentence for each: field, got, allowed."""
    yield from _peaks(bundle, "")
    yield from _times(bundle)
    yield from _ranks(bundle)
    runtime, run = bundle.runtime, bundle.run
    if runtime.steps_per_iteration % run.num_envs:
        yield (
            f"runtime.steps_per_iteration is {runtime.steps_per_iteration}; it must be a multiple of run.num_envs,"
            f" {run.num_envs}"
        )
    wall_s = runtime.iterations_completed * runtime.iteration_time_s.mean
    if not math.isclose(runtime.total_wall_time_s, wall_s, rel_tol=SUM_TOLERANCE):
        yield (
            f"runtime.total_wall_time_s is {runtime.total_wall_time_s}; it must be iterations_completed times"
            f" iteration_time_s.mean, {wall_s:g}"
        )
    # A mean of rates is never below the rate of the mean.
    slowest_fps = runtime.steps_per_iteration / runtime.iteration_time_s.mean
    for name in ("collection_fps", "total_fps"):
        got = getattr(runtime, name).mean
        if got < slowest_fps * (1 - SUM_TOLERANCE) - RATE_SLACK_FPS:
            yield (
                f"runtime.{name}.mean is {got}; it must be at least {slowest_fps:g}, steps_per_iteration over"
                " iteration_time_s.mean"
            )
    if runtime.environment_step_timing is not None:
        yield from _step_timing(runtime.environment_step_timing)


def _peaks(part: Part, where: str) -> Iterator[str]:
    if isinstance(part, MeanStd) and part.peak is not None and part.peak < part.mean - PEAK_SLACK:
        yield f"{where}.peak is {part.peak}; it must be at least the mean, {part.mean}"
    for name in type(part).model_fields:
        yield from _peaks_of(getattr(part, name), f"{where}.{name}".removeprefix("."))


def _peaks_of(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, Part):
        yield from _peaks(value, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _peaks_of(item, f"{where}.{key}")


def _times(bundle: Bundle) -> Iterator[str]:
    moments = []
    for name in ("start_time_utc", "end_time_utc"):
        text = getattr(bundle.run, name)
        moment = _moment(text)
        if moment is None:
            yield f"run.{name} is {text!r}; it must be a date and time with its offset, as 2026-11-21T10:00:00+00:00"
        else:
            moments.append(moment)
    if len(moments) == 2:  # noqa: PLR2004 - start and end
        duration_s = max(0.0, (moments[1] - moments[0]).total_seconds())
        if abs(bundle.run.duration_s - duration_s) > CLOCK_SLACK_S:
            yield f"run.duration_s is {bundle.run.duration_s}; from start to end it must be {duration_s}"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


def _ranks(bundle: Bundle) -> Iterator[str]:
    extra = bundle.extra or {}
    if not bundle.is_distributed:
        found = [name for name in RANK_FIELDS if name in extra]
        if found:
            yield f"extra.{found[0]} is {extra[found[0]]!r}; it must not be there unless extra.distributed is true"
        return
    wrong = [name for name in RANK_FIELDS if type(extra.get(name)) is not int or extra[name] < 1]  # type: ignore[operator]
    for name in wrong:
        got = repr(extra[name]) if name in extra else "missing"
        yield f"extra.{name} is {got}; where extra.distributed is true it must be a whole number above 0"
    if extra.get("workload_scope") != "global":
        yield (
            f"extra.workload_scope is {extra.get('workload_scope')!r}; it must be 'global': otherwise the rates are of"
            " rank 0 alone"
        )
    if extra.get("measurement_scope") != "rank0_process":
        yield f"extra.measurement_scope is {extra.get('measurement_scope')!r}; it must be 'rank0_process'"
    if wrong:
        return
    ranks = bundle.num_nodes * int(extra["local_world_size"])
    if bundle.world_size != ranks:
        yield f"extra.world_size is {bundle.world_size}; it must be num_nodes times local_world_size, {ranks}"
    num_envs = bundle.num_envs_per_rank * bundle.world_size
    if bundle.run.num_envs != num_envs:
        yield f"run.num_envs is {bundle.run.num_envs}; it must be num_envs_per_rank times world_size, {num_envs}"


def _step_timing(timing: EnvironmentStepTiming) -> Iterator[str]:
    where = "runtime.environment_step_timing"
    parts = {
        name: getattr(timing, name)
        for name in (
            "simulation_step_time_s",
            "outside_simulation_step_time_s",
            "outside_simulation_step_fraction",
            "simulation_step_calls",
        )
    }
    is_split = timing.measurement_mode == "serialized_synchronized"
    for name, part in parts.items():
        if (part is None) == is_split:
            yield (
                f"{where}.{name} is {'missing' if part is None else 'there'}; with measurement_mode"
                f" {timing.measurement_mode} it must {'' if is_split else 'not '}be there"
            )
    if timing.simulation_step_time_s is None or timing.outside_simulation_step_time_s is None:
        return
    whole_s = timing.simulation_step_time_s.mean + timing.outside_simulation_step_time_s.mean
    if not math.isclose(timing.environment_step_time_s.mean, whole_s, rel_tol=SUM_TOLERANCE):
        yield (
            f"{where}.environment_step_time_s.mean is {timing.environment_step_time_s.mean}; it must be the sum of the"
            f" time inside and outside of simulation, {whole_s:g}"
        )
