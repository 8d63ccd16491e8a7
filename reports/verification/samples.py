"""One run: whether its samples can be true, each against the others, its case, its machine and the sampler. Pure."""

import math
import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from reports.verification.finding import OR_LIST, RUN_AGAIN, Json, Place
from reports.verification.runs import PARTS_OF_ITERATION, Columns, Run
from suite.records.telemetry import AGREEMENT, THROTTLING
from suite.schema.rank_protocol import FIRST_ITERATIONS

# What is timed inside what; parts of one whole do not overlap.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "iteration_time_s": PARTS_OF_ITERATION,
    "collection_time_s": ("environment_step_time_s", "inference_time_s"),
    "learning_time_s": ("all_reduce_time_s",),
    "environment_step_time_s": ("simulate_time_s", "render_time_s"),
}
THEIRS: Final = {  # the libraries' own clocks -> ours; they do not count what is before the first iteration of a turn
    "total_fps": "iteration_time_s", "collection_time_s": "collection_time_s", "learning_time_s": "learning_time_s",
    "update_time_s": "learning_time_s",
}  # fmt: skip
MARKED_EVERY: Final = 4
FIRST_MARKED: Final = 2
LEAST_OF_TURN: Final = 5  # iterations
# How far apart true values may be; "at most" is of all runs until 2026-12.
SLACK: Final = 0.01  # timers of a GPU and of its host, as a share, and in seconds
SLACK_S: Final = 0.002  # also what another training takes between two lines of code, where trainings share a GPU
CROWD: Final = 20  # trainings that may come between where a block trains at the same time: its times mean nothing
BETWEEN: Final = 0.1  # the share of a run's time between its iterations, for book-keeping: at most 0.086
BETWEEN_S: Final = 0.03  # or this time an iteration, of a tiny task on slow cores
LIBRARY_SLACK: Final = 0.05  # a library's sections begin and end at other lines than ours: at most 0.034
WALL_SLACK_S: Final = 1.0
MEMORY_SLACK: Final = 0.01  # the size of a GPU's memory is stored to 0.1 GB
TOLERANCE: Final = 1e-4  # figures of the sampler are stored to six digits
POWER_TOLERANCE: Final = 0.01  # mean power and energy over time: at most 0.005
CLOCKS_S: Final = 60.0  # the wall clock of a node and that of the host that started the run
READING_S: Final = 1.0  # between two readings that are stored
READINGS: Final = (3.0, 0.05)  # their number and what time and period give, and a share of it: at most 2 and 0.01
READING_TOLERANCE: Final = 0.06  # readings are stored with one digit or more
MEAN_SPREADS: Final = 2.5  # the mean of stored readings and of all, in spread over root of their number: at most 1.4
PROBES: Final = (0.4, 4.0)  # fastest core probe of a run over that of its env_check: 0.74 to 2.09
ENERGY_TOLERANCE: Final = 0.001  # the counter at the ends of a window, between its readings: at most 0.0001
INTEGRAL_TOLERANCE: Final = 0.05  # power once a second and all readings of it: at most 0.031
_TWICE: Final = {  # part of a workload -> the setting that it has to equal
    "physics_dt_s": "env.sim.dt", "decimation": "env.decimation", "episode_length_s": "env.episode_length_s",
}  # fmt: skip
_SOUND: Final = frozenset({"ok", "warning", "not_needed", "not_checked"})  # verdicts of a check in a completed run
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_ZEROS: Final = re.compile(r"(\.0)+$")  # 1.6 and 1.6.0 are one version


def check_run(place: Place, run: Run) -> None:
    """Check that a run has all samples if it has completed, and then that they can be true."""
    if run.outcome != "completed":
        _check_incomplete(place, run)
    if run.outcome != "skipped" and not run.has_begun:
        place.fault("its start", "missing", "given", RUN_AGAIN)
    if run.counts and not run.is_measured:
        got = "missing in a process, or in an iteration of it"
        place.fault(" or ".join(("imports_torch", "start_s", *PARTS_OF_ITERATION)), got, "a number in each", RUN_AGAIN)
    if not run.is_measured:
        return
    _check_completed(place, run)
    for rank, columns in zip(run.ranks, run.columns, strict=True):
        own = place.within(f"rank {rank['rank']}")
        _check_times(own, run, columns)
        _check_turns(own, run, columns)
        _check_rank(own, run, rank)
    if run.telemetry is not None:
        _check_telemetry(place.within("telemetry"), run)
        for node in run.readings:
            _check_readings(place.within(f"readings of node {node['node']}"), run, node)


def _check_incomplete(place: Place, run: Run) -> None:
    """Check that a run that was skipped never began, and that something shows why another one failed."""
    if not run.record["reason"]:
        place.fault(f"the reason of an outcome, {run.outcome},", "missing", "given")
    if run.outcome == "skipped":
        parts = ("started_utc", "wall_time_s", "ranks", "telemetry", "readings", "exit_code")
        place.same("what a skipped run has", [name for name in parts if run.record[name]], [])
        return
    verdicts = {check["verdict"] for rank in run.ranks for check in rank["validity"]}
    lengths = {len(rank["samples"].get("iteration_time_s", ())) for rank in run.ranks}
    policies = {rank["parameters_sha256"] for rank in run.ranks}
    is_trained = policies != {None} and (len(policies) == 1 or run.case["trainings_per_gpu"] > 1)
    is_whole = lengths == {run.case["iterations"]} and not any(rank["error"] for rank in run.ranks)
    if is_whole and is_trained and verdicts <= _SOUND:
        got = f"{run.outcome}, though every rank ended its training and no check failed"
        place.fault("its outcome", got, "completed, or a sign of the failure", OR_LIST)


def _check_completed(place: Place, run: Run) -> None:
    """Check that a campaign would have called it completed, its ranks against each other, its work and its machine."""
    case, machine, workload = run.case, run.machine, run.record["workload"] or {}
    place.same("exit_code", run.record["exit_code"] or 0, 0, RUN_AGAIN)
    policies = {rank["parameters_sha256"] for rank in run.ranks if rank["parameters_sha256"]}
    if len(policies) > 1 and case["trainings_per_gpu"] == 1:
        place.fault("the ranks' parameters", f"of {len(policies)} kinds after training", "alike", RUN_AGAIN)
    for rank, columns in zip(run.ranks, run.columns, strict=True):
        own = place.within(f"rank {rank['rank']}")
        own.same("its columns", sorted(columns), sorted(run.columns[0]))
        for check in (check for check in rank["validity"] if check["verdict"] not in _SOUND):
            got = f"a {check['verdict']} ({check['found']}) in a round called completed"
            own.fault(check["name"], got, "no failure", RUN_AGAIN)
    learning = 1 if run.is_pipeline else case["nnodes"] * case["nproc_per_node"]
    stated = {"workload": "train", "global_minibatch_size": case["minibatch_size"] * learning, **case}
    wanted = {name: value for name, value in stated.items() if name in workload}
    if workload:  # without it there is a finding of its own
        wanted |= {name: workload.get(setting, "as its settings say") for name, setting in _TWICE.items()}
    place.same("workload", workload, wanted)
    checks = {check["name"]: check["found"] for check in machine["checks"]}
    if machine["gpus"] and "gpus_present" in checks:
        sizes = ["" if gpu["memory_gb"] is None else f" {gpu['memory_gb']:.0f} GB" for gpu in machine["gpus"]]
        kinds = [gpu["name"] + size for gpu, size in zip(machine["gpus"], sizes, strict=True)]
        words = [f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds)]
        place.same("the GPUs by env_check", checks["gpus_present"], ", ".join(words))
        place.same("the driver by env_check", checks.get("driver_for_stack"), f"driver {machine['driver_version']}")
    place.between("its fastest core probe over that of env_check", run.probe_ratio(), *PROBES)


# --- one rank ---


def _check_times(place: Place, run: Run, columns: Columns) -> None:
    """Check that iterations follow each other, parts against wholes, marks, and the library's clock."""
    starts_s, times_s = columns["start_s"], columns["iteration_time_s"]
    crowded_s = SLACK_S * (CROWD if run.case["only_learning"] else 1)
    most_s = np.diff(starts_s) + crowded_s + SLACK * times_s[:-1]
    place.between("iteration_time_s, until the next began,", times_s[:-1], 0, most_s)
    number, pieces = len(times_s) - 1, [(max(1, first), last) for first, last in run.pieces if last > 0]
    run_s = sum(starts_s[last] + times_s[last] - starts_s[first] for first, last in pieces)
    if run.case["workload"] == "train" and number > 1:
        most, share = max(BETWEEN, BETWEEN_S * number / run_s), float(1 - times_s[1:].sum() / run_s)
        place.between("the share of its time between iterations", share, -SLACK, most)
    for whole, names in PARTS.items():
        parts = [columns[name] for name in names if name in columns]
        if whole in columns and parts:
            is_all = whole == "iteration_time_s" and len(parts) == len(names)
            least_s = columns[whole] * (1 - SLACK) - crowded_s if is_all else 0.0
            most_s = columns[whole] * (1 + SLACK) + crowded_s
            place.between(" and ".join(names), np.nansum(parts, axis=0), least_s, most_s)
    marks = (np.arange(len(times_s)) % MARKED_EVERY == FIRST_MARKED).astype(float)
    if "marked" in columns:  # runs of the first days have no such column: all were marked
        place.between("marked", np.nan_to_num(columns["marked"], nan=-1), marks, marks)
    for name, column in columns.items():
        if name.endswith(("_time_s", "_calls", "_bytes")):
            place.between(name, column, 0, math.inf)
        library, _, clock = name.rpartition(".")
        ours = THEIRS.get(clock, "") if library in {"rl_games", "rsl_rl", "torchrl"} else ""
        if ours in columns:
            theirs_s = run.frames // run.case["trainings_per_gpu"] / column if clock == "total_fps" else column.copy()
            theirs_s[[first for first, _ in run.pieces[1:]]] = math.nan
            slack_s = LIBRARY_SLACK * columns[ours] + crowded_s * run.case["trainings_per_gpu"]
            place.between(f"{ours} by {name}", theirs_s, columns[ours] - slack_s, columns[ours] + slack_s)


def _check_turns(place: Place, run: Run, columns: Columns) -> None:
    """Check that turns are numbered and not shorter than the keeper gives them; longer ones would overlap others."""
    turns, column = run.record["turns"], columns.get("turn")
    if turns is None or column is None or run.case["only_learning"]:
        place.same("a column of turns", column is not None, turns is not None and not run.case["only_learning"])
        return
    begun = column[FIRST_ITERATIONS:]
    numbers, counts = np.unique(begun, return_counts=True)
    is_early = not np.isnan(column[:FIRST_ITERATIONS]).all()
    if is_early or [*numbers] != [*range(1, turns["turns"] + 1)] or (np.diff(begun) < 0).any():
        expected = f"1 to {turns['turns']}, from iteration {FIRST_ITERATIONS} on"
        place.fault("the numbers of its turns", [*map(float, numbers)], expected)
        return
    shortest = counts[:-1].min(initial=LEAST_OF_TURN)
    place.between("iterations of its shortest turn but the last", shortest, LEAST_OF_TURN, math.inf)


def _check_rank(place: Place, run: Run, rank: Json) -> None:
    """Check what it learned, its settings against its case, its start-up, and its memory."""
    case, machine, settings, samples = run.case, run.machine, rank["settings"], rank["samples"]
    if case["workload"] == "train" and not _SHA256.fullmatch(rank["parameters_sha256"] or ""):
        place.fault("parameters_sha256", rank["parameters_sha256"], "a SHA-256")
    for name in ("success_mean", "success_rate"):  # that of the last episodes to end, in the runs of before
        place.between(name, samples.get(name, ()), 0, 1)
    work: Json = run.record["workload"] or {}
    if None not in map(work.get, ("episode_length_s", "env.sim.dt", "decimation")):
        most = math.ceil(work["episode_length_s"] / (work["env.sim.dt"] * work["decimation"])) + 1
        place.between("episode_length_mean", samples.get("episode_length_mean", ()), 0, most)
    index, gpus = rank["local_rank"] // run.sharing, {gpu["name"]: gpu["memory_gb"] for gpu in machine["gpus"]}
    wanted = {
        "seed": run.seed + rank["rank"],
        "num_envs": case["num_envs"],
        "device": f"cuda:{index}" if case["device"] == "cuda" else "cpu",
        "torch_num_threads": case["cpu_threads"] or settings.get("torch_num_threads"),
        "deterministic_algorithms": case["deterministic"],
    }
    asked = dict(f"versions.{package}".split("==", 1) for package in case["with_packages"] if "==" in package)
    is_installed = {name: _ZEROS.sub("", str(settings.get(name))) == _ZEROS.sub("", asked[name]) for name in asked}
    wanted |= {name: version for name, version in asked.items() if not is_installed[name]}
    if case["device"] == "cuda" and case["nnodes"] == 1 and settings.get("gpu_name"):
        wanted["gpu_name"] = settings["gpu_name"] if settings["gpu_name"] in gpus else " or ".join(sorted(gpus))
        wanted["cuda_driver_version"] = machine["cuda_driver_version"]
    known = {*settings, "seed", "num_envs", "device"}  # which every rank has
    place.same("settings", settings, {name: own for name, own in wanted.items() if name in known})
    torch_s, last_s = rank["phases_s"]["imports_torch"], samples["start_s"][-1] + samples["iteration_time_s"][-1]
    until_s = sum(rank["phases_s"].values()) - torch_s  # the rank's clock begins after its import of torch
    place.between("start-up until its first iteration", until_s, 0, samples["start_s"][0])
    place.between("wall_time_s around its iterations", run.wall_s, torch_s + last_s - WALL_SLACK_S, math.inf)
    most_gb = (gpus.get(settings.get("gpu_name")) or math.inf) * (1 + MEMORY_SLACK)
    for node in (node for node in run.readings if node["node"] == (rank["node"] or 0)):
        used_gb = [used for used in node["columns"].get(f"gpu{index}.memory_used_gb", ()) if used is not None]
        most_gb = min(most_gb, max(used_gb, default=math.inf))
    place.between("peak_memory_gb", rank["peak_memory_gb"], 0, most_gb)
    place.between("kernels_compiled", rank["kernels_compiled"], int(case["kernel_cache"] == "empty"), math.inf)


# --- the sampler ---


def _check_telemetry(place: Place, run: Run) -> None:
    """Check its summary: the window against the samples and the time of the run, energy against power."""
    seen, spans = run.telemetry, run.window_spans
    window_s, gpus = sum(end_s - start_s for start_s, end_s in spans), seen["gpus"]
    place.same("window_s", seen["window_s"], window_s, tolerance=TOLERANCE)
    zero_s = seen["window_start_unix_s"] - spans[0][0] - run.began_s
    imports_s = run.ranks[0]["phases_s"]["imports_torch"]
    most_s = min(run.wall_s - spans[-1][1], imports_s + CLOCKS_S) + CLOCKS_S
    place.between("the start of rank 0's clock after that of the run", zero_s, imports_s - CLOCKS_S, most_s)
    energies = ([gpu[name] for gpu in gpus] for name in ("energy_counter_j", "energy_integrated_j"))
    total_j = next((math.fsum(known) for known in energies if known and None not in known), None)
    is_whole = len(gpus) == run.gpus and not seen["missing_nodes"]
    if is_whole or seen["energy_j"] is not None:
        place.same("energy_j", seen["energy_j"], total_j, tolerance=TOLERANCE)
    frames = run.frames * int(sum(run.columns[0]["start_s"] >= spans[0][0]))
    per_joule = frames / seen["energy_j"] if run.has_frames and seen["energy_j"] else None
    place.same("frames_per_joule", seen["frames_per_joule"], per_joule, tolerance=TOLERANCE)
    powers_w, power_w = [gpu["power_w"] and gpu["power_w"]["mean"] for gpu in gpus], seen["power_w"]
    if powers_w and None not in powers_w and (is_whole or power_w is not None):
        place.same("power_w.mean", power_w and power_w["mean"], math.fsum(powers_w), tolerance=POWER_TOLERANCE)
    for gpu in (gpu for gpu in gpus if gpu["energy_integrated_j"] is not None):
        own, integral_j, own_w = place.within(f"GPU {gpu['index']}"), gpu["energy_integrated_j"], gpu["power_w"]
        expected_w = integral_j / seen["window_s"]
        own.same("power_w.mean", own_w and own_w["mean"], expected_w, tolerance=POWER_TOLERANCE)
        if gpu["energy_counter_j"] is not None and seen["energy_agrees"]:
            own.same("energy_counter_j", gpu["energy_counter_j"], integral_j, tolerance=AGREEMENT)
    wanted, stolen = seen["host_cpu_percent"], seen["host_stolen_percent"]  # others used what a hypervisor left
    if wanted is not None and not seen["nodes"]:  # of several nodes it is that of the one with most
        most = wanted["mean"] * (1 + TOLERANCE) - (stolen["mean"] if stolen else 0)
        place.between("host_others_percent", seen["host_others_percent"], 0, most)


def _check_readings(place: Place, run: Run, node: Json) -> None:
    """Check a node's readings: as many as the iterations are long, and those in the window fit the summary of all."""
    seen, columns, start_s = run.telemetry, node["columns"], run.columns[0]["start_s"][0]
    times_s, spans = np.array(columns["time_s"], float), run.window_spans
    number = int(((times_s >= start_s) & (times_s <= run.ends_s[-1])).sum())
    expected = (run.ends_s[-1] - start_s) / READING_S
    slack = READINGS[0] + READINGS[1] * expected
    place.between("its number, by its time and the sampler's period,", number, expected - slack, expected + slack)
    inside = np.flatnonzero(np.any([(times_s > start_s) & (times_s < end_s) for start_s, end_s in spans], axis=0))
    gpus = {f"gpu{gpu['index']}": gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]}
    parts = {**gpus, **{f"rank{rank['rank']}": rank for rank in seen["ranks"]}}
    parts["host"] = {name.removeprefix("host_"): value for name, value in seen.items() if name.startswith("host_")}
    for name, column in columns.items():
        part, _, field = name.partition(".")
        summary = parts.get(part, {}).get(field)
        known = [column[index] for index in inside if column[index] is not None] if isinstance(summary, dict) else []
        if known:
            slack = TOLERANCE * abs(summary["max"]) + READING_TOLERANCE
            place.between(f"the least {name}", min(known), summary["min"] - slack, math.inf)
            place.between(f"the most {name}", max(known), -math.inf, summary["max"] + slack)
            if not seen["nodes"] and len(known) > 1:
                chance = MEAN_SPREADS * (summary["max"] - summary["min"]) / math.sqrt(len(known)) + slack
                mean = math.fsum(known) / len(known)
                place.between(f"the mean {name}", mean, summary["mean"] - chance, summary["mean"] + chance)
    for name, gpu in gpus.items():
        own, energy_j, power_w = place.within(name), columns.get(f"{name}.energy_j"), columns.get(f"{name}.power_w")
        if energy_j and gpu["energy_counter_j"] is not None and len(spans) == 1:
            ends_j = np.interp(spans[0], times_s, np.array(energy_j, float))
            expected_j = float(ends_j[1] - ends_j[0])
            own.same("energy_j over the window", gpu["energy_counter_j"], expected_j, tolerance=ENERGY_TOLERANCE)
        if power_w and gpu["energy_integrated_j"] is not None:
            points_s = [
                np.array([begin_s, *times_s[(times_s > begin_s) & (times_s < end_s)], end_s])
                for begin_s, end_s in spans
            ]
            read_w = np.array(power_w, float)
            total_j = float(sum(np.trapezoid(np.interp(own_s, times_s, read_w), own_s) for own_s in points_s))
            own.same("power_w over the window", gpu["energy_integrated_j"], total_j, tolerance=INTEGRAL_TOLERANCE)
        slowdowns = columns.get(f"{name}.slowdowns") or [""] * len(times_s)
        held_back = sorted(THROTTLING & {word for index in inside for word in (slowdowns[index] or "").split("+")})
        if held_back and gpu["throttled_share"] == 0:
            own.fault("throttled_share", "0", f"above it, by a reading: {', '.join(held_back)}")
