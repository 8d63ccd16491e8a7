"""A stored run with its samples as arrays, and the table that figures are computed from. Pure.

The table has a row for every completed run, with the columns that ``figures.csv`` uses, under the same names. A value
that was not measured is None.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reports.verification.finding import Json

type Array = npt.NDArray[np.float64]
type Columns = Mapping[str, Array]  # a value for each iteration, NaN where nothing was measured
type Spans = list[tuple[float, float]]
type Row = Mapping[str, Any]  # column -> value

REPEAT: Final = "-aa"  # ends the id of a repeat of a baseline
COPY: Final = "-alone"  # ends the id of a copy of a configuration in turns, which ran alone
WINDOW: Final = 0.8  # of the iterations, the last: they count
SLOWED: Final = 1.3  # times the fastest probe of a machine
COLD: Final = 1.75  # times the shortest start of a configuration
COMPARABLE: Final = range(20, 101)  # iterations of runs by which machines are compared
MOST_OTHERS_PERCENT: Final = 5  # of CPU time by other processes, in such a run
LONGEST: Final = 1e9  # seconds, steps or iterations of an episode
SMOOTHING: Final = 5  # iterations that the reward at the end is the median of, and at least that of a level
PARTS_OF_ITERATION: Final = ("collection_time_s", "learning_time_s")
ASKED: Final = "as many rounds as were asked for"  # why no further one ran
_PROBE: Final = re.compile(r"([1-9]\d*) µs at best")


class Run:
    """A stored run, of a file that is of the format. What is made of samples needs all: ask ``is_measured``."""

    def __init__(self, record: Json, stored: Json, folder: Path) -> None:
        self.record, self.case, self.folder = record, (case := stored["configuration"]), folder  # of its set
        self.machine, self.ended_because = stored["machines"][record["machine"]], stored["ended_because"]
        self.ranks, self.telemetry, self.readings = record["ranks"], record["telemetry"], record["readings"]
        self.case_id, self.outcome, self.number = case["configuration_id"], record["outcome"], record["run"]
        self.name = f"{folder.name}: {self.case_id} round {self.number}"
        self.is_copy = self.case_id.endswith(COPY)
        self.counts = self.outcome == "completed" and not record["profiled_ranks"]
        machine = self.machine["host_label"], self.machine["cpu_model"]
        self.host = folder, self.is_copy, machine, case["device"], case["only_learning"]  # whose core probes compare
        self.isaaclab_difference: float | None = None  # of its time from that of Isaac Lab's own benchmark
        self.columns = [{name: np.array(own, float) for name, own in rank["samples"].items()} for rank in self.ranks]
        self.is_measured = self.counts and all(
            "imports_torch" in rank["phases_s"] and name in columns and not np.isnan(columns[name]).any()
            for rank, columns in zip(self.ranks, self.columns, strict=True)
            for name in ("start_s", *(PARTS_OF_ITERATION if case["workload"] == "train" else ()))
        )
        # By the clock of the day; a run that was skipped did not begin.
        self.has_begun, self.wall_s = record["started_utc"] is not None, float(record["wall_time_s"] or 0)
        self.began_s = math.nan
        if self.has_begun:
            self.began_s = datetime.strptime(record["started_utc"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
        self.ended_s = self.began_s + self.wall_s
        # Its neighbours in turns and itself; empty if it ran alone.
        self.block = frozenset([self.case_id, *record["turns"]["beside"]] if record["turns"] else ())
        # A pipeline has one process that simulates while another one learns, on one GPU or on two.
        self.is_pipeline, per_node = case["workload"] == "async_pipeline", case["nproc_per_node"]
        self.gpus = case["nnodes"] * (1 if case["only_learning"] else per_node)
        own = per_node if case["only_learning"] else case["trainings_per_gpu"]
        self.sharing = 2 if self.is_pipeline and self.gpus == 1 else own  # processes on a GPU
        self.processes = self.gpus * self.sharing
        apart = self.processes if case["seed_per_run"] is True else case["seed_per_run"]
        self.seed = case["seed"] + self.number * apart  # of its first process
        self.frames = case["num_envs_global"] * case["num_steps_per_env"]  # of an iteration
        self.has_frames = case["workload"] != "all_reduce"

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """The first and the last iteration of each piece, between which no other run had a turn."""
        turns = np.nan_to_num(self.columns[0].get("turn", np.zeros(self.length)))
        begins = [int(index) + 1 for index in np.flatnonzero(np.diff(turns))]
        return [(first, after - 1) for first, after in pairwise([0, *begins, self.length])]

    @cached_property
    def window_spans(self) -> Spans:
        """The sampled window: the last iterations of rank 0, without what others ran between its turns.

        Runs before 30 Nov 2026 were sampled over a window that began elsewhere, so its length says where.
        """
        starts_s, later_s, lengths_s = self.columns[0]["start_s"], 0.0, np.empty(self.length)
        for first, last in reversed(self.pieces):
            lengths_s[first : last + 1] = self.ends_s[last] - starts_s[first : last + 1] + later_s
            later_s += float(self.ends_s[last] - starts_s[first])
        start = 1 + int(np.argmin(abs(lengths_s[1:] - self.telemetry["window_s"])))
        pieces = [(max(first, start), last) for first, last in self.pieces if last >= start]
        return [(float(starts_s[first]), float(self.ends_s[last])) for first, last in pieces]

    @property
    def turns(self) -> Spans:
        """Its turns by the clock of the day, if it took some and was sampled."""
        if not (self.is_measured and self.block and self.telemetry):
            return []
        zero_s = float(self.telemetry["window_start_unix_s"] - self.window_spans[0][0])  # when rank 0's clock is zero
        starts_s, ends_s = zero_s + self.columns[0]["start_s"], zero_s + self.ends_s
        return [(float(starts_s[first]), float(ends_s[last])) for first, last in self.pieces[1:]]

    @property
    def length(self) -> int:
        return len(self.columns[0]["start_s"])

    @property
    def ends_s(self) -> Array:
        """When the iterations of rank 0 ended, by its clock."""
        return self.columns[0]["start_s"] + self.columns[0]["iteration_time_s"]

    def samples(self, name: str) -> Array:
        """A row a process and a column an iteration."""
        nothing = np.full(self.length, math.nan)
        return np.array([columns.get(name, nothing) for columns in self.columns])

    def last(self, share: float = WINDOW) -> Array:
        """The iterations that count: the last ones, or all but the first."""
        return np.arange(max(1, self.length - math.floor(share * self.length)), self.length)

    def unmarked(self, share: float = WINDOW) -> Array:
        """The last iterations without marked ones; all of them if every one is marked."""
        last, marks = self.last(share), self.samples("marked")[0]
        unmarked = last[marks[last] == 0]
        return unmarked if len(unmarked) else last

    def iteration_s(self, share: float = WINDOW) -> float:
        """The mean of the slowest process; of trainings that share a GPU the harmonic mean of their means."""
        times_s = self.samples("iteration_time_s")[:, self.unmarked(share)]
        if self.case["trainings_per_gpu"] > 1:
            return float(len(times_s) / np.sum(1 / times_s.mean(axis=1)))
        return float(times_s.max(axis=0).mean())

    def clocks_s(self) -> tuple[float, float | None]:
        """The median iteration of the first process by our clock and by its library's; None if that has none.

        Without the first iteration of a turn: the library's clock goes on while others have theirs.
        """
        columns, library_s = self.columns[0], None
        plain = np.setdiff1d(self.unmarked(), [first for first, _ in self.pieces[1:]])
        iterations = plain if len(plain) else self.unmarked()
        if {"rsl_rl.collection_time_s", "rsl_rl.learning_time_s"} <= columns.keys():
            library_s = _median((columns["rsl_rl.collection_time_s"] + columns["rsl_rl.learning_time_s"])[iterations])
        elif "rl_games.total_fps" in columns:  # a library knows its own training only
            frames = self.frames // self.case["trainings_per_gpu"]
            library_s = _median(frames / columns["rl_games.total_fps"][iterations])
        return float(np.median(columns["iteration_time_s"][iterations])), library_s

    def probe_ratio(self) -> float:
        """Its fastest core probe over that of its env_check, of the same core; NaN without one of them."""
        checks = {check["name"]: check["found"] for check in self.machine["checks"]}
        best = _PROBE.match(checks.get("core_speed", ""))
        fastest_s = np.fmin.reduce(self.samples("core_probe_time_s"), axis=None)
        return 1e6 * float(fastest_s) / float(best[1]) if best else math.nan

    def start_s(self) -> float:
        """Time until the first iteration has ended, of the process that took longest by its own clock."""
        return max(
            float(rank["phases_s"]["imports_torch"] + columns["start_s"][0] + columns["iteration_time_s"][0])
            for rank, columns in zip(self.ranks, self.columns, strict=True)  # clocks begin once torch is imported
        )


def levels(rewards: Array, window: int) -> Array:
    """Return the mean of each window of iterations; NaN where one of them has no reward."""
    if len(rewards) < window:
        return np.array([])
    return np.lib.stride_tricks.sliding_window_view(rewards, window).mean(axis=1)


# --- the table ---

# What was run: columns that no two configurations of a pair differ in, but for what they compare.
_OF_CASE: Final = {  # column -> field of a case
    **{name: name for name in ("series", "task", "workload", "scaling", "device", "iterations", "minibatch_rule")},
    **{name: name for name in ("minibatch_size", "optimiser_steps", "trainings_per_gpu", "kernel_cache")},
    "library": "rl_library", "physics": "stack", "nodes": "nnodes", "environments_per_gpu": "num_envs",
    "environments": "num_envs_global", "steps": "num_steps_per_env", "is_deterministic": "deterministic",
    "only_learning": "only_learning",
}  # fmt: skip
_WORK: Final[Mapping[str, Callable[[Run], Any]]] = {
    "gpus": lambda run: run.gpus,
    "size": lambda run: run.case["num_envs_global" if run.case["scaling"] == "strong" else "num_envs"],
    "frames_per_iteration": lambda run: run.frames,
    "is_tuned": lambda run: run.case["division"] == "open",
    "variant": lambda run: run.case_id.rpartition(f"-{run.case['nnodes']}x{run.case['nproc_per_node']}")[2],
    "packages": lambda run: " ".join(run.case["with_packages"]),
    "mps": lambda run: run.ranks[0]["settings"].get("mps"),
}
WORK: Final = (*_OF_CASE, *_WORK)
# What a run that is compared with those of other machines has: it was alone, and as shipped.
_COMPARED: Final = {
    "nnodes": 1, "nproc_per_node": 1, "trainings_per_gpu": 1, "device": "cuda", "workload": "train",
    "division": "closed", "deterministic": False, "with_packages": [], "kernel_cache": "kept", "only_learning": False,
}  # fmt: skip


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Return the rows of measured runs, with repeats of baselines and copies that ran alone."""
    by_case, fastest_s = defaultdict[Any, list[Run]](list), defaultdict[Any, float](lambda: math.inf)
    for run in runs:
        by_case[run.folder, run.case_id].append(run)
        fastest_s[run.host] = min([fastest_s[run.host], *_known(run.samples("core_probe_time_s"))])
    return [_row(run, by_case[run.folder, run.case_id], fastest_s[run.host]) for run in runs]


def _row(run: Run, of_case: Sequence[Run], fastest_s: float) -> Row:
    case, machine, seen, window = run.case, run.machine, run.telemetry or {}, run.last()
    marked = window[run.samples("marked")[0, window] != 0]  # all of these in a run without marks
    probes_s, times_s = run.samples("core_probe_time_s"), run.samples("iteration_time_s")[:, window]
    looks_s = _known(probes_s[:, marked].max(axis=0)) if case["device"] == "cuda" else np.zeros(0)
    log_probes = [np.log(own_s).mean() for own_s in map(_known, probes_s[:, window]) if len(own_s)]
    log_probe = float(np.mean(log_probes)) if len(log_probes) == len(probes_s) else None
    iteration_s, (ours_s, library_s) = run.iteration_s(), run.clocks_s()
    hashes, rewards = [rank["parameters_sha256"] for rank in run.ranks], run.samples("reward_mean")
    reward_mean, success_mean = (  # of the processes that have one
        np.nansum(own, axis=0) / (~np.isnan(own)).sum(axis=0) for own in (rewards, run.samples("success_mean"))
    )
    reward_window = _reward_window(run)
    gpus, machine_gpus = seen.get("gpus", []), machine["gpus"]
    wanted, stolen, others = (seen.get(f"host_{name}_percent") for name in ("cpu", "stolen", "others"))
    is_compared = all(case[name] == value for name, value in _COMPARED.items()) and case["iterations"] in COMPARABLE
    is_quiet = others is not None and others <= MOST_OTHERS_PERCENT and machine["host_label"] and machine_gpus
    training = f"{case['task']}-{case['rl_library']}-{case['stack']}-n{case['num_envs']}-steps{case['optimiser_steps']}"
    timed = {  # what runs that shared their GPU do not have: times, what follows from one, and what is of the whole GPU
        "start_s": run.start_s(),
        "iteration_s": iteration_s,
        "iteration_95_s": run.iteration_s(0.95),
        "iteration_50_s": run.iteration_s(0.5),
        "frames_per_s": run.frames / iteration_s if run.has_frames else None,
        "step_frames_per_s": _frames_per_s(run, run.samples("environment_step_time_s")[:, marked]),
        "rollout_frames_per_s": _frames_per_s(run, run.samples("collection_time_s")[:, run.unmarked()]),
        **_shares(run, marked),
        "library_difference": library_s and ours_s / library_s - 1,
        "process_skew": _median(times_s.max(axis=0) / np.median(times_s, axis=0) - 1) if len(times_s) > 1 else None,
        "core_probe_us": _most(_median(1e6 * own_s) for own_s in probes_s[:, marked]),
        "log_probe": log_probe,
        "core_looks": len(looks_s) or None,
        "slowed_core_looks": int(sum(looks_s > SLOWED * fastest_s)) if len(looks_s) else None,
        "policy_call_s": _median(run.samples("lerobot.latency_median_s")[0, window]),
        "written_s": _median(run.samples("lerobot.written_time_s")[0, window]),
        "gpu_memory_gb": _most(gpu["memory_used_gb"] and gpu["memory_used_gb"]["max"] for gpu in gpus),
        "gpu_utilisation_percent": _mean(gpu["sm_utilisation_percent"] for gpu in gpus),
        "power_w": _mean([seen.get("power_w")]),
        "joules_per_million_frames": 1e6 / seen["frames_per_joule"] if seen.get("frames_per_joule") else None,
        "throttled_share": _most(gpu["throttled_share"] for gpu in gpus),
    }
    return {
        "set": run.folder.name,
        "configuration": run.case_id.removesuffix(REPEAT).removesuffix(COPY),
        "is_repeat": run.case_id.endswith(REPEAT),
        "is_alone": run.is_copy,
        "run": run.number,
        "block": (run.number, min(run.block)) if run.block else None,
        **{name: case[field] for name, field in _OF_CASE.items()},
        **{name: value(run) for name, value in _WORK.items()},
        "seed": run.seed,
        "machine": machine["host_label"],
        "gpu_model": machine_gpus[0]["name"] if machine_gpus else None,
        "one_gpu_training": training if is_compared and is_quiet and log_probe else None,
        "start": _start(run, of_case),
        **(dict.fromkeys(timed) if case["only_learning"] else timed),
        "isaaclab_difference": run.isaaclab_difference,
        # What a training ended with, to count different ones: the hash of its parameters, and all rewards.
        "result": None if None in hashes else (*hashes, rewards.tobytes()),
        "reward_mean": reward_mean,
        "last_reward": _ending(np.median, reward_mean[-SMOOTHING:], SMOOTHING),
        "reward_window": reward_window,
        "learned_reward": _ending(np.mean, reward_mean[-reward_window:], reward_window),
        "learned_success": _ending(np.mean, success_mean[-reward_window:], reward_window),
        "bytes_per_frame": _median(run.samples("lerobot.bytes_per_frame")[0, window]),
        "peak_memory_gb": _most(rank["peak_memory_gb"] for rank in run.ranks),
        "stolen_share": stolen["mean"] / wanted["mean"] if wanted and stolen and wanted["mean"] else None,
        "others_share": None if others is None else others / 100,
        "sampler_core_share": seen.get("sampler_cpu_share"),
    }


def _reward_window(run: Run) -> int:
    """Iterations of an episode that is not cut short; at least ``SMOOTHING``."""
    work: Mapping[str, Any] = run.record["workload"] or {}
    parts: list[Any] = [work.get(name) for name in ("episode_length_s", "physics_dt_s", "decimation")]
    if not all(type(part) in {int, float} and 0 < part <= LONGEST for part in parts):
        return SMOOTHING
    iterations: float = parts[0] / parts[1] / parts[2] / run.case["num_steps_per_env"]
    return max(SMOOTHING, round(min(iterations, LONGEST)))


def _ending(statistic: Any, rewards: Array, window: int) -> float | None:
    """The statistic of the last rewards; None if there are fewer, or one is missing."""
    is_whole = len(rewards) == window and not np.isnan(rewards).any()
    return float(statistic(rewards)) if is_whole else None


def _start(run: Run, runs: Sequence[Run]) -> str | None:
    """Say whether a run of a case began cold: by the kernels that it compiled, else by the time it took."""
    counts = [rank["kernels_compiled"] for rank in run.ranks if rank["local_rank"] == 0]
    if run.case["kernel_cache"] == "empty":
        return "cold"
    if not run.block and counts and None not in counts:  # runs in turns share one cache
        return "cold" if max(counts) else "warm"
    is_long = run.start_s() > COLD * min(other.start_s() for other in runs)
    return None if len(runs) == 1 else "cold" if is_long else "warm"


def _frames_per_s(run: Run, times_s: Array) -> float | None:
    """Frames over the mean time of the slowest process, in the iterations where all processes have one."""
    slowest_s = _known(times_s.max(axis=0))
    return run.frames / float(slowest_s.mean()) if run.has_frames and len(slowest_s) and slowest_s.min() > 0 else None


def _shares(run: Run, marked: Array) -> Mapping[str, float | None]:
    """The parts of a process's marked iterations, mean over processes; None for a part that one of them lacks."""
    names = ("iteration", "learning", "environment_step", "simulate", "render", "inference", "all_reduce")
    parts_s = {name: run.samples(f"{name}_time_s")[:, marked] for name in names}
    whole, learning, steps, simulate, render, inference, reduced = (times_s.sum(axis=1) for times_s in parts_s.values())
    if not len(marked) or np.isnan(learning + steps).any():
        whole = whole * math.nan  # no split without these
    least = parts_s["all_reduce"].min(axis=0).sum()  # the process that arrives last waits least
    reduced = reduced + 0 * least  # NaN unless all processes have it
    shares = {
        "simulate": simulate,
        "render": render,
        "environment": steps - np.nan_to_num(simulate) - np.nan_to_num(render),
        "infer": inference,
        "other": whole - steps - learning - np.nan_to_num(inference),
        "learn": learning - np.nan_to_num(reduced),
        "all_reduce": least,
        "waiting": reduced - least,
    }
    means = {f"{name}_share": float(np.mean(part_s / whole)) for name, part_s in shares.items()}
    return {name: None if math.isnan(mean) else mean for name, mean in means.items()}


def _known(values: Array) -> Array:
    return values[~np.isnan(values)]


def _median(values: Array) -> float | None:
    return float(np.median(_known(values))) if len(_known(values)) else None


def _mean(summaries: Iterable[Json | None]) -> float | None:
    means = [summary["mean"] for summary in summaries if summary is not None]
    return fmean(means) if means else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
