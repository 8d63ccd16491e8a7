"""Every column of the tables of runs, in one place: its name, unit, meaning, and where it comes from.

The page *Data* shows this list, and users get the same columns as Parquet and CSV. A value that was not measured is
null, never 0.
"""

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from reports.data.facts import iteration_of
from reports.data.rewards import Levels
from reports.data.samples import (
    PARTS,
    core_probe_us,
    of_gpus,
    own_wall_s,
    part_shares,
    present,
    process_skew,
    samples_at,
    throughput,
)
from suite.campaign.runs.upstream import Pair, medians_of_rank_0
from suite.records.rewards import SMOOTHING_WINDOW, last_reward, mean_rewards
from suite.schema.observations import TelemetrySummary
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.core_speed import Host, core_speed
from suite.statistics.reduce import counted_iterations, marked_iterations, round_time_s, window
from suite.statistics.series_model import run_time
from suite.statistics.start_up import Start, classify, start_up
from suite.statistics.twins import SUFFIX, is_twin

IMPORTS: Final = ("imports_torch", "imports")  # phases

type Value = str | int | float | bool | None

LONGEST: Final = 10**9  # seconds, steps or iterations of an episode
COMPARABLE: Final = range(20, 101)  # iterations: fewer are a start, and after more the policy has another pace
MOST_OTHERS_PERCENT: Final = 5  # of CPU time by other processes, where machines are compared


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stored run with what its record does not say itself."""

    set_name: str
    contributor: str | None
    is_alone: bool  # a copy of a configuration whose runs were measured alone
    record: RunRecord
    start: Start | None  # cold or warm, judged beside the other runs of its configuration
    fastest_probe_s: Mapping[Host, float]  # of the set
    pair: Pair | None = None  # with a run of Isaac Lab's own benchmark


@dataclass(frozen=True)
class Column:
    """``value`` is None for what a run does not have."""

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    unit: str  # empty for names, counts and shares
    meaning: str
    value: Callable[[Run], Value]


def _text(name: str, meaning: str, value: Callable[[Run], str | None]) -> Column:
    return Column(name, str, "", meaning, value)


def _flag(name: str, meaning: str, value: Callable[[Run], bool | None]) -> Column:
    return Column(name, bool, "", meaning, value)


def _count(name: str, meaning: str, value: Callable[[Run], int | None], unit: str = "") -> Column:
    return Column(name, int, unit, meaning, value)


def _measured(name: str, unit: str, meaning: str, value: Callable[[RunRecord], float | None]) -> Column:
    """A column of completed runs."""
    return Column(name, float, unit, meaning, lambda run: value(run.record) if run.record.counts else None)


def _timed(name: str, unit: str, meaning: str, value: Callable[[RunRecord], float | None]) -> Column:
    """A time, what follows from one, or what is of the whole GPU; null too for runs that shared their GPU."""
    return _measured(name, unit, meaning, lambda record: None if record.case.only_learning else value(record))


def _seen(value: Callable[[TelemetrySummary], float | None]) -> Callable[[RunRecord], float | None]:
    """What the sampler saw; null for runs that it did not watch."""
    return lambda record: value(record.telemetry) if record.telemetry else None


def variant_of(case: Case) -> str:
    """Suffix of the case id; empty for the plain case."""
    return case.case_id.rpartition(f"-{case.topology}")[2].removeprefix("-")


def _size(case: Case) -> int:
    return case.num_envs_global if case.scaling == "strong" else case.num_envs


def starts_of(result: CaseResult) -> Mapping[int, Start | None]:
    """Return whether each completed run of a configuration began cold or warm, by its number; {} if others ran too."""
    completed = () if result.case.only_learning else result.completed
    kinds = classify([start_up(record) for record in completed])
    return {record.round: kind for record, kind in zip(completed, kinds, strict=True)}


def _block(record: RunRecord) -> str | None:
    return f"{record.round}:{min(record.case.case_id, *record.turns.beside)}" if record.turns else None


def _one_gpu_training(run: Run) -> str | None:
    """What machines are compared by: such as ``Isaac-Ant-rl_games-kitless-n1024-steps4``."""
    record, case = run.record, run.record.case
    others_percent = record.telemetry.host_others_percent if record.telemetry else None
    is_idle = others_percent is not None and others_percent <= MOST_OTHERS_PERCENT
    is_as_shipped = case.division == "closed" and not (case.deterministic or case.with_packages)
    is_alone = case.num_processes == 1 and is_idle and not case.only_learning
    is_known = record.environment.host_label and record.environment.gpus and record.counts
    if not (is_known and is_as_shipped and is_alone and case.learns and case.device == "cuda"):
        return None
    if case.kernel_cache == "empty" or case.iterations not in COMPARABLE or run_time(record).log_probe is None:
        return None
    return f"{case.task}-{case.rl_library}-{case.stack}-n{case.num_envs}-steps{case.optimiser_steps}"


def _reward_window(record: RunRecord) -> int:
    values = map((record.workload or {}).get, ("episode_length_s", "physics_dt_s", "decimation"))
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    parts = [value for value in numbers if 0 < value <= LONGEST]
    if len(parts) < 3:  # noqa: PLR2004 - all of them
        return SMOOTHING_WINDOW
    iterations = parts[0] / parts[1] / parts[2] / record.case.num_steps_per_env
    return max(SMOOTHING_WINDOW, round(min(iterations, LONGEST)))


def _learned(record: RunRecord, column: str = "reward_mean") -> float | None:
    levels = Levels.of(mean_rewards(record, column), _reward_window(record)).rewards
    return levels[-1] if levels else None


def _mps(record: RunRecord) -> bool | None:
    value = record.ranks[0].settings.get("mps") if record.ranks else None
    return value if isinstance(value, bool) else None


def _versions(record: RunRecord) -> str:
    settings = record.ranks[0].settings if record.ranks else {}
    names = sorted(name for name, value in settings.items() if name.startswith("versions.") and value is not None)
    return " ".join(f"{name.removeprefix('versions.')}=={settings[name]}" for name in names)


def _imports_s(record: RunRecord) -> float | None:
    known = [[rank.phases_s[name] for name in IMPORTS if name in rank.phases_s] for rank in record.ranks]
    return _most(sum(times_s) for times_s in known if times_s)


def _iteration_s(record: RunRecord, share: float) -> float:
    return round_time_s(record, window(record, share))


def _share(part: str) -> Callable[[RunRecord], float | None]:
    return lambda record: part_shares(record).get(part)


def _mean_probe_us(record: RunRecord) -> float | None:
    log_probe_s = run_time(record).log_probe
    return None if log_probe_s is None else 1e6 * math.exp(log_probe_s)


def _looks(run: Run) -> tuple[int | None, int | None]:
    speed = core_speed([run.record], run.fastest_probe_s) if run.record.counts else None
    return (speed.looks, speed.slowed) if speed else (None, None)


def _result(record: RunRecord) -> str | None:
    hashes = [rank.parameters_sha256 for rank in record.ranks]
    if not record.counts or None in hashes:
        return None
    rewards = [rank.samples.get("reward_mean") for rank in record.ranks]
    return hashlib.sha256(repr((hashes, rewards)).encode()).hexdigest()[:16]


def _library_difference(record: RunRecord) -> float | None:
    ours_s, library_s = medians_of_rank_0(record)
    return None if library_s is None else ours_s / library_s - 1


def _library_median(column: str) -> Callable[[RunRecord], float | None]:
    """The median over the window of a column that an RL library has of its own."""

    def median(record: RunRecord) -> float | None:
        known = present(samples_at(record.ranks[0], column, window(record)))
        return statistics.median(known) if known else None

    return median


def _most(values: Iterable[float | None]) -> float | None:
    return max(present(values), default=None)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


IDENTITY: Final = (
    _text("set", "folder of the campaign", lambda run: run.set_name),
    _text("contributor", "who sent it; null: the project", lambda run: run.contributor),
    _text(
        "configuration", "what was run; a repeat of a baseline has the baseline's",
        lambda run: run.record.case.case_id.removesuffix(SUFFIX),
    ),
    _flag("is_repeat", "whether it repeats a baseline to measure noise", lambda run: is_twin(run.record.case)),
    _flag("is_alone", "whether it copies a configuration to measure it without turns", lambda run: run.is_alone),
    _count("run", "number of the run, from 0", lambda run: run.record.round),
    _text("block", "equal for runs that took turns with each other; null: alone", lambda run: _block(run.record)),
    _text(
        "work", "equal for runs of any campaign whose iterations do the same",
        lambda run: hashlib.sha256(iteration_of(run.record.case).encode()).hexdigest()[:16],
    ),
)  # fmt: skip
WORK: Final = (
    _text("series", "configurations that were planned together", lambda run: run.record.case.series),
    _text("task", "Gym id of Isaac Lab", lambda run: run.record.case.task),
    _text("library", "RL library", lambda run: run.record.case.rl_library),
    _text("physics", "physics and renderer; kitless: Newton, no Isaac Sim", lambda run: run.record.case.stack),
    _text("workload", "train, or the part that runs alone", lambda run: run.record.case.workload),
    _text("scaling", "weak: environments per GPU stay; strong: all of them stay", lambda run: run.record.case.scaling),
    _text("device", "cuda or cpu", lambda run: run.record.case.device),
    _count("nodes", "of one training", lambda run: run.record.case.nnodes),
    _count(
        "gpus", "of one training, 1 on each node if only_learning; processes on a CPU",
        lambda run: run.record.case.num_gpus,
    ),
    _count("environments_per_gpu", "of one process", lambda run: run.record.case.num_envs),
    _count("environments", "of all processes", lambda run: run.record.case.num_envs_global),
    _count("size", "environments that stay while GPUs are added", lambda run: _size(run.record.case)),
    _count("steps", "environment steps of a rollout", lambda run: run.record.case.num_steps_per_env),
    _count("iterations", "of training", lambda run: run.record.case.iterations),
    _count(
        "frames_per_iteration", "environment steps of all processes",
        lambda run: run.record.case.frames_per_iteration, "frames",
    ),
    _text("minibatch_rule", "what stays while GPUs are added", lambda run: run.record.case.minibatch_rule),
    _count("minibatch_size", "samples of an optimiser step of a process", lambda run: run.record.case.minibatch_size),
    _count("optimiser_steps", "of an iteration and process", lambda run: run.record.case.optimiser_steps),
    _flag(
        "is_tuned", "whether settings differ from those that Isaac Lab ships",
        lambda run: run.record.case.division == "open",
    ),
    _text("variant", "end of the id", lambda run: variant_of(run.record.case)),
    _flag(
        "is_deterministic", "with settings of `isaaclab train --deterministic`",
        lambda run: run.record.case.deterministic,
    ),
    _count("trainings_per_gpu", "independent ones at the same time", lambda run: run.record.case.trainings_per_gpu),
    _flag(
        "only_learning", "whether all processes and other runs shared one GPU, so that no time of it means anything",
        lambda run: run.record.case.only_learning,
    ),
    _text("kernel_cache", "empty: each run compiles all kernels", lambda run: run.record.case.kernel_cache),
    _text("packages", "versions that differ from the pins", lambda run: " ".join(run.record.case.with_packages)),
    _count("seed", "of the first process", lambda run: run.record.case.seed_of(rank=0, round_index=run.record.round)),
    _flag("mps", "whether trainings shared the GPU through MPS", lambda run: _mps(run.record)),
)  # fmt: skip
WHERE: Final = (
    _text("machine", "label", lambda run: run.record.environment.host_label),
    _text(
        "gpu_model", "of the first GPU",
        lambda run: run.record.environment.gpus[0].name if run.record.environment.gpus else None,
    ),
    _text("cpu_model", "as Linux says", lambda run: run.record.environment.cpu_model),
    _count("cpus", "usable logical cores", lambda run: run.record.environment.num_cpus),
    _text("driver", "of NVIDIA", lambda run: run.record.environment.driver_version),
    _text("commit", "of labscale", lambda run: run.record.environment.git_commit),
    _text("versions", "of packages that the first process saw", lambda run: _versions(run.record)),
    _text(
        "interconnect", "what the data of the processes crossed",
        lambda run: run.record.transport.interconnect if run.record.transport else None,
    ),
    _text(
        "one_gpu_training",
        "what machines are compared by: as shipped, one GPU of an idle machine, 20 to 100 iterations; null: others",
        _one_gpu_training,
    ),
    _flag("is_in_image", "whether it ran in a container image", lambda run: run.record.image_digest is not None),
    _flag(
        "is_emulated", "whether the nodes are parts of one machine",
        lambda run: bool(run.record.transport and run.record.transport.emulated),
    ),
)  # fmt: skip
MEASURED: Final = (
    _count("processes", "of all its trainings", lambda run: run.record.case.num_processes),
    _text("outcome", "how it ended", lambda run: run.record.outcome),
    _text("reason", "why, unless it completed", lambda run: run.record.reason),
    _text("started_utc", "ISO 8601", lambda run: run.record.started_utc),
    Column("wall_s", float, "s", "from start to end", lambda run: run.record.wall_time_s),
    _timed("own_wall_s", "s", "wall time without the turns of others", own_wall_s),
    _text("start", "cold or warm kernels; null: unknown", lambda run: run.start),
    _timed("start_s", "s", "to the end of the first iteration", lambda record: start_up(record).total_s),
    _timed("imports_s", "s", "until the modules are read, on the slowest process", _imports_s),
    _measured("kernels_compiled", "", "in the run", lambda record: start_up(record).kernels_compiled),
    _timed("iteration_s", "s", "mean time of an iteration, over the last 80 % of them", round_time_s),
    _timed("iteration_95_s", "s", "the same over the last 95 %", lambda record: _iteration_s(record, 0.95)),
    _timed("iteration_50_s", "s", "the same over the last 50 %", lambda record: _iteration_s(record, 0.5)),
    _timed(
        "frames_per_s", "frames/s", "of all processes",
        lambda record: record.case.frames_per_iteration / round_time_s(record) if record.case.has_frames else None,
    ),
    _timed(
        "step_frames_per_s", "frames/s", "of steps alone",
        lambda record: throughput(record, "environment_step_time_s", marked_iterations(record)),
    ),
    _timed(
        "rollout_frames_per_s", "frames/s", "of rollouts alone",
        lambda record: throughput(record, "collection_time_s", counted_iterations(record)),
    ),
    *(_timed(f"{name}_share", "", f"part of an iteration: {part}", _share(name)) for name, part in PARTS.items()),
    Column(
        "isaaclab_difference", float, "",
        "an iteration of the first process over that of Isaac Lab's own benchmark, which ran next, less 1",
        lambda run: run.pair.difference if run.pair else None,
    ),
    _timed(
        "library_difference", "", "the same over what the RL library reported in the same process", _library_difference
    ),
    _timed("process_skew", "", "slowest process over the median one, less 1", process_skew),
    _timed("core_probe_us", "µs", "a fixed piece of work on the core of the slowest process", core_probe_us),
    _timed("mean_probe_us", "µs", "the same, geometric mean of processes and iterations", _mean_probe_us),
    _count("core_looks", "how often the core was probed", lambda run: _looks(run)[0]),
    _count("slowed_core_looks", "how often it was slowed", lambda run: _looks(run)[1]),
    _text("result", "hash of the trained parameters and all rewards", lambda run: _result(run.record)),
    _measured("last_reward", "", "median of the last five iterations", last_reward),
    _count(
        "reward_window", "of an episode of full length, at least 5: a reward that is waited for is the mean over them",
        lambda run: _reward_window(run.record), "iterations",
    ),
    _measured("learned_reward", "", "mean over the last episode of full length", _learned),
    _measured("learned_success", "", "the same of the task's success rate", partial(_learned, column="success_mean")),
    _timed("policy_call_s", "s", "a call of LeRobot's policy, median", _library_median("lerobot.latency_median_s")),
    _timed("written_s", "s", "until LeRobot's data set is complete", _library_median("lerobot.written_time_s")),
    _measured("bytes_per_frame", "B", "of LeRobot's data set", _library_median("lerobot.bytes_per_frame")),
    _measured(
        "peak_memory_gb", "GB", "of torch, on the GPU with most",
        lambda record: _most(rank.peak_memory_gb for rank in record.ranks),
    ),
    _timed(
        "gpu_memory_gb", "GB", "in use on the GPU with most",
        _seen(lambda seen: _most(of_gpus(seen, "memory_used_gb", "max"))),
    ),
    _timed(
        "gpu_utilisation_percent", "%", "time in which a kernel ran, mean of GPUs",
        _seen(lambda seen: _mean(of_gpus(seen, "sm_utilisation_percent", "mean"))),
    ),
    _timed("power_w", "W", "of all GPUs", _seen(lambda seen: seen.power_w.mean if seen.power_w else None)),
    _timed(
        "joules_per_million_frames", "J", "of all GPUs",
        _seen(lambda seen: 1e6 / seen.frames_per_joule if seen.frames_per_joule else None),
    ),
    _timed(
        "throttled_share", "", "of the time, on the GPU with most",
        _seen(lambda seen: _most(gpu.throttled_share for gpu in seen.gpus)),
    ),
    _measured("stolen_share", "", "of CPU time, by a hypervisor", _seen(lambda seen: seen.stolen_share)),
    _measured(
        "others_share", "", "of CPU time, by other processes",
        _seen(lambda seen: None if seen.host_others_percent is None else seen.host_others_percent / 100),
    ),
    _measured("sampler_core_share", "", "of a core, by the sampler", _seen(lambda seen: seen.sampler_cpu_share)),
)  # fmt: skip
RUN_COLUMNS: Final[Sequence[Column]] = (*IDENTITY, *WORK, *WHERE, *MEASURED)
