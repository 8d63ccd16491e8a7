"""The table that figures are computed from: a row for every completed run, from raw JSON. Pure.

It has the columns that ``figures.csv`` uses, under the same names. A value that was not measured is None.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np

from reports.verification.finding import Json

type Row = Mapping[str, Any]  # column -> value

REPEAT: Final = "-aa"  # ends the id of a repeat of a baseline
WINDOW: Final = 0.8  # of the iterations, the last: they count
SLOWED: Final = 1.3  # times the fastest probe of a machine
COLD: Final = 1.75  # times the shortest start of a configuration
SMOOTHING: Final = 5  # iterations that a reward is the median of
_OF_CASE: Final = {  # column -> field of a case
    "series": "series", "task": "task", "library": "rl_library", "physics": "stack", "workload": "workload",
    "nodes": "nnodes", "environments_per_gpu": "num_envs", "is_deterministic": "deterministic",
    "trainings_per_gpu": "trainings_per_gpu",
}  # fmt: skip
_OF_LEROBOT: Final = {  # column -> column of samples
    "policy_call_s": "lerobot.latency_median_s", "written_s": "lerobot.written_time_s",
    "bytes_per_frame": "lerobot.bytes_per_frame",
}  # fmt: skip


def rows_of_set(name: str, cases: Iterable[Sequence[Json]]) -> list[Row]:
    """Return the rows of a set. ``cases``: records of each case, repeats of baselines too, but no copies run alone."""
    measured = [
        [Run(record) for record in records if record["outcome"] == "completed" and not record["profiled_ranks"]]
        for records in cases
    ]
    fastest_s: dict[Any, float] = {}  # probe, by machine
    for run in (run for runs in measured for run in runs):
        fastest_s[run.machine] = min([fastest_s.get(run.machine, math.inf), *_known(run.probes_s)])
    return [_row(name, run, _start(run, runs), fastest_s[run.machine]) for runs in measured for run in runs]


def smoothed(rewards: Any) -> Any:
    """Return the median of each window of ``SMOOTHING`` iterations; NaN where one of them has no reward."""
    if len(rewards) < SMOOTHING:
        return np.array([])
    return np.median(np.lib.stride_tricks.sliding_window_view(rewards, SMOOTHING), axis=1)


class Run:
    """A record with its samples as arrays, a row a process and a column an iteration; NaN was not measured."""

    def __init__(self, record: Json) -> None:
        self.record, self.case, self.ranks = record, record["case"], record["ranks"]
        host = record["environment"]
        self.machine = (host["host_label"], host["cpu_model"], self.case["device"])
        self.frames = self.case["num_envs_global"] * self.case["num_steps_per_env"]
        self.length = len(self.ranks[0]["samples"]["iteration_time_s"])
        self.times_s, self.probes_s = self.samples("iteration_time_s"), self.samples("core_probe_time_s")
        self._marks = self.ranks[0]["samples"].get("marked")
        self.window = self.last(WINDOW)
        self.marked = [i for i in self.window if self._marks[i]] if self._marks else self.window

    def samples(self, column: str) -> Any:
        return np.array([rank["samples"].get(column) or [None] * self.length for rank in self.ranks], float)

    def last(self, share: float) -> list[int]:
        return list(range(max(1, self.length - math.floor(share * self.length)), self.length))

    def counted(self, share: float = WINDOW) -> list[int]:
        """The last iterations without marked ones; all of them if every one is marked."""
        plain = [i for i in self.last(share) if not (self._marks and self._marks[i])]
        return plain or self.last(share)

    def iteration_s(self, share: float = WINDOW) -> float:
        """The mean of the slowest process; of trainings that share a GPU the harmonic mean of their means."""
        if self.case["trainings_per_gpu"] > 1:
            return float(len(self.ranks) / np.sum(1 / self.times_s[:, self.counted()].mean(axis=1)))
        return float(self.times_s.max(axis=0)[self.counted(share)].mean())

    def frames_per_s(self, column: str, iterations: Sequence[int]) -> float | None:
        """Frames over the mean time of the slowest process, in the iterations where all processes have one."""
        slowest_s = _known(self.samples(column)[:, iterations].max(axis=0))
        has_frames = self.case["workload"] != "all_reduce" and len(slowest_s) and slowest_s.min() > 0
        return self.frames / float(slowest_s.mean()) if has_frames else None

    def rewards(self) -> Any:
        """The reward of each iteration, mean over the processes that have one."""
        rewards = self.samples("reward_mean")
        with np.errstate(invalid="ignore"):
            return np.nansum(rewards, axis=0) / (~np.isnan(rewards)).sum(axis=0)

    def start_s(self) -> float:
        """Time until the first iteration has ended, of the process that took longest by its own clock."""
        own_s = []
        for rank, times_s in zip(self.ranks, self.times_s, strict=True):
            began_s, imports_s = rank["samples"].get("start_s", [None])[0], rank["phases_s"].get("imports_torch")
            if began_s is None or imports_s is None:
                own_s.append(sum(rank["phases_s"].values()) + self.times_s[:, 0].max())
            else:
                own_s.append(imports_s + began_s + times_s[0])
        return float(max(own_s))


def _row(set_name: str, run: Run, start: str | None, fastest_s: float) -> Row:
    record, case, environment = run.record, run.case, run.record["environment"]
    turns, seen, rewards, iteration_s = record["turns"], record["telemetry"], run.rewards(), run.iteration_s()
    times_s, probes_s = run.times_s[:, run.window], _known(run.probes_s[:, run.marked].max(axis=0))
    looks = [probe_s > SLOWED * fastest_s for probe_s in probes_s if case["device"] == "cuda"]
    return {
        "set": set_name,
        "configuration": case["case_id"].removesuffix(REPEAT),
        "is_repeat": case["case_id"].endswith(REPEAT),
        "run": record["round"],
        "block": turns and (record["round"], min(case["case_id"], *turns["beside"])),
        **{name: case[field] for name, field in _OF_CASE.items()},
        "gpus": case["nnodes"] * case["nproc_per_node"],
        "packages": " ".join(case["with_packages"]),
        "is_tuned": case["division"] == "open",
        "frames_per_iteration": run.frames,
        "seed": case["seed"] + (record["round"] * len(run.ranks) if case["seed_per_round"] else 0),
        "machine": environment["host_label"],
        "gpu_model": environment["gpus"][0]["name"] if environment["gpus"] else None,
        "start": start,
        "start_s": run.start_s(),
        "iteration_s": iteration_s,
        "iteration_95_s": run.iteration_s(0.95),
        "iteration_50_s": run.iteration_s(0.5),
        "frames_per_s": run.frames / iteration_s if case["workload"] != "all_reduce" else None,
        "step_frames_per_s": run.frames_per_s("environment_step_time_s", run.marked),
        "rollout_frames_per_s": run.frames_per_s("collection_time_s", run.counted()),
        **_shares(run),
        "process_skew": _median(times_s.max(axis=0) / np.median(times_s, axis=0) - 1) if len(times_s) > 1 else None,
        "core_probe_us": _most(_median(1e6 * probes_s) for probes_s in run.probes_s[:, run.marked]),
        "log_probe": _log_probe(run),
        "core_looks": len(looks) or None,
        "slowed_core_looks": sum(looks) if looks else None,
        "result": _result(run),
        "reward_mean": rewards,
        "last_reward": next(reversed(_known(smoothed(rewards))), None),
        **{name: _median(run.samples(column)[0, run.window]) for name, column in _OF_LEROBOT.items()},
        "peak_memory_gb": _most(rank["peak_memory_gb"] for rank in run.ranks),
        **{name: None if seen is None else value(seen) for name, value in _SAMPLED.items()},
    }


def _start(run: Run, runs: Sequence[Run]) -> str | None:
    """Say whether a run of a case began cold: by the kernels that it compiled, else by the time it took."""
    counts = [rank["kernels_compiled"] for rank in run.ranks if rank["local_rank"] == 0]
    if run.case["kernel_cache"] == "empty":
        return "cold"
    if run.record["turns"] is None and counts and None not in counts:  # runs in turns share one cache
        return "cold" if max(counts) else "warm"
    is_long = run.start_s() > COLD * min(other.start_s() for other in runs)
    return None if len(runs) == 1 else "cold" if is_long else "warm"


def _shares(run: Run) -> Mapping[str, float | None]:
    """The parts of a process's marked iterations, mean over processes; None for a part that one of them lacks."""
    names = ("iteration", "learning", "environment_step", "simulate", "render", "inference", "all_reduce")
    parts_s = {name: run.samples(f"{name}_time_s")[:, run.marked] for name in names}
    whole, learning, steps, simulate, render, inference, reduced = (times_s.sum(axis=1) for times_s in parts_s.values())
    if not run.marked or np.isnan(learning + steps).any():
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


def _log_probe(run: Run) -> float | None:
    """The logarithm of the probe in seconds, mean over the window and processes; None if one of them has none."""
    probes_s = [_known(own_s) for own_s in run.probes_s[:, run.window]]
    return float(np.mean([np.log(own_s).mean() for own_s in probes_s])) if all(map(len, probes_s)) else None


def _result(run: Run) -> str | None:
    """What a training ended with, to count different ones: the hash of its parameters, and all rewards."""
    hashes = [rank["parameters_sha256"] for rank in run.ranks]
    return None if None in hashes else repr((hashes, [rank["samples"].get("reward_mean") for rank in run.ranks]))


# What the sampler stored of a run.
_SAMPLED: Final[Mapping[str, Callable[[Json], Any]]] = {
    "gpu_memory_gb": lambda seen: _of_gpus(seen, "memory_used_gb", "max", max),
    "gpu_utilisation_percent": lambda seen: _of_gpus(seen, "sm_utilisation_percent", "mean", fmean),
    "power_w": lambda seen: seen["power_w"] and seen["power_w"]["mean"],
    "joules_per_million_frames": lambda seen: 1e6 / seen["frames_per_joule"] if seen["frames_per_joule"] else None,
    "throttled_share": lambda seen: _most(gpu["throttled_share"] for gpu in seen["gpus"]),
    "stolen_share": lambda seen: _stolen_share(seen["host_cpu_percent"], seen["host_stolen_percent"]),
    "others_share": lambda seen: None if seen["host_others_percent"] is None else seen["host_others_percent"] / 100,
    "sampler_core_share": lambda seen: seen["sampler_cpu_share"],
}


def _of_gpus(seen: Json, name: str, statistic: str, of_all: Callable[[Sequence[float]], float]) -> float | None:
    values = [gpu[name][statistic] for gpu in seen["gpus"] if gpu[name] is not None]
    return of_all(values) if values else None


def _stolen_share(wanted: Json | None, stolen: Json | None) -> float | None:
    return stolen["mean"] / wanted["mean"] if wanted and stolen and wanted["mean"] else None


def _median(values: Any) -> float | None:
    return float(np.median(_known(values))) if len(_known(values)) else None


def _known(values: Any) -> Any:
    return values[~np.isnan(values)]


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
