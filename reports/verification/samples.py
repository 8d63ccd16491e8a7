"""One run: whether its samples can be true, each against the others, its case, its machine and the sampler. Pure."""

import math
import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from reports.verification.finding import OR_LIST, RUN_AGAIN, Json, Place
from reports.verification.runs import Array, Columns, Run, Spans

# What is timed inside what; parts of one whole do not overlap.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "iteration_time_s": ("collection_time_s", "learning_time_s"),
    "collection_time_s": ("environment_step_time_s", "inference_time_s"),
    "learning_time_s": ("all_reduce_time_s",),
    "environment_step_time_s": ("simulate_time_s", "render_time_s"),
}
REQUIRED: Final = ("start_s", "iteration_time_s", *PARTS["iteration_time_s"])
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
MARKED_EVERY: Final = 4
FIRST_MARKED: Final = 2
FIRST_ITERATIONS: Final = 2  # before the first turn
LEAST_OF_TURN: Final = 5  # iterations
# Iterations follow each other, and parts lie within their whole; timers of a GPU and of its host differ by a little.
SLACK: Final = 0.01
SLACK_S: Final = 0.002
# Between its iterations a training run does book-keeping: at most 8.6 % of its time until 2026-11, or ``BETWEEN_S`` an
# iteration of a tiny task on slow cores. After the first iteration a library sets up what it keeps, which takes longer.
BETWEEN: Final = 0.1
BETWEEN_S: Final = 0.03
# A library's sections begin and end at other lines than ours: at most 3.4 % until 2026-11. Where trainings share a GPU,
# another one may have it between the two lines, so each of them has ``SLACK_S``.
LIBRARY_SLACK: Final = 0.05
LIBRARY_TOLERANCE_S: Final = 1e-4  # between the library's own figures: rl_games adds two times of its own
WALL_SLACK_S: Final = 1.0
MEMORY_SLACK: Final = 0.01  # the size of a GPU's memory is stored to 0.1 GB
TOLERANCE: Final = 1e-4  # figures of the sampler are stored to six digits
# Mean power against energy over time. Rounds up to 2026-11-23 have the mean of the readings, at most 0.5 % apart.
POWER_TOLERANCE: Final = 0.01
AGREEMENT: Final = 0.05  # of a counter and an integral that are said to agree
CLOCKS_S: Final = 60.0  # the wall clock of a node may differ by this from that of the host that started the run
HELD_BACK: Final = frozenset(
    {"power_cap", "hardware_slowdown", "sync_boost", "thermal_software", "thermal_hardware", "power_brake"}
)
READING_TOLERANCE: Final = 0.06  # of readings that are stored with one digit or more
ENERGY_TOLERANCE: Final = 0.001  # the counter at the ends of a window, between its readings: 0.0001 until 2026-12
INTEGRAL_TOLERANCE: Final = 0.05  # power once a second against all readings: at most 0.031 until 2026-12
# The mean of the readings that were kept, one a second, from the mean of all: in parts of the spread over the root of
# their number, at most 1.4 until 2026-12.
MEAN_SPREADS: Final = 2.5
_SOUND: Final = frozenset({"ok", "warning", "not_needed", "not_checked"})  # verdicts of a check in a completed run
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_OF_THE_CASE: Final = (  # what a fingerprint of the work and a case both say
    "task", "workload", "assets", "rl_library", "num_steps_per_env", "minibatch_rule", "minibatch_size",
    "global_minibatch_size", "optimiser_steps",
)  # fmt: skip


def has_samples(place: Place, run: Run) -> bool:
    """Return whether all ranks have a sample of each iteration, without which nothing else can be checked."""
    before, required = len(place.findings), REQUIRED if run.case["workload"] == "train" else REQUIRED[:2]
    place.same("its ranks", [rank["rank"] for rank in run.ranks], list(range(run.processes)), RUN_AGAIN)
    for number, columns in enumerate(run.columns):
        lengths = sorted({len(column) for column in columns.values()})
        incomplete = [name for name in required if not len(columns.get(name, ())) or np.isnan(columns[name]).any()]
        if lengths != [run.case["iterations"]] or incomplete or columns["iteration_time_s"].min() < SHORTEST_S:
            got = f"incomplete in {', '.join(incomplete) or 'iteration_time_s'}: {lengths} iterations"
            place.within(f"rank {number}").fault("its samples", got, f"{run.case['iterations']}, above 0", RUN_AGAIN)
    return len(place.findings) == before


def check_run(place: Place, run: Run) -> None:
    """Check a run that has all samples if it has completed."""
    if run.outcome != "completed":
        _check_incomplete(place, run)
    if not run.counts:
        return
    _check_completed(place, run)
    with np.errstate(divide="ignore", invalid="ignore"):
        for rank, columns in zip(run.ranks, run.columns, strict=True):
            own = place.within(f"rank {rank['rank']}")
            _check_times(own, run, columns)
            _check_turns(own, run.record["turns"], columns)
            _check_library(own, run, columns)
            _check_rank(own, run, rank)
    if run.telemetry is not None:
        _check_telemetry(place.within("telemetry"), run)


def _check_incomplete(place: Place, run: Run) -> None:
    """Check that a run that was skipped never began, and that something shows why another one failed."""
    if not run.record["reason"]:
        place.fault(f"the reason of an outcome, {run.outcome},", "missing", "given")
    if run.outcome == "skipped":
        parts = ("started_utc", "wall_time_s", "ranks", "telemetry", "readings", "exit_code")
        place.same("what a skipped run has", [name for name in parts if run.record.get(name)], [])
        return
    verdicts = {check["verdict"] for rank in run.ranks for check in rank["validity"]}
    lengths = {len(rank["samples"].get("iteration_time_s", ())) for rank in run.ranks}
    is_whole = lengths == {run.case["iterations"]} and not any(rank["error"] for rank in run.ranks)
    policies = {rank["parameters_sha256"] for rank in run.ranks}
    is_trained = policies != {None} and (len(policies) == 1 or run.case["trainings_per_gpu"] > 1)
    if is_whole and is_trained and verdicts <= _SOUND:
        got = f"{run.outcome}, though every rank ended its training and no check failed"
        place.fault("its outcome", got, "completed, or a sign of the failure", OR_LIST)


def _check_completed(place: Place, run: Run) -> None:
    """Check that a campaign would have called it completed; its fingerprint and env_check against its case."""
    case, machine, workload = run.case, run.machine, run.record["workload"] or {}
    place.same("exit_code", run.record["exit_code"] or 0, 0, RUN_AGAIN)
    place.same("its start", run.record["started_utc"], run.record["started_utc"] or "given", RUN_AGAIN)
    policies = {rank["parameters_sha256"] for rank in run.ranks if rank["parameters_sha256"]}
    if len(policies) > 1 and case["trainings_per_gpu"] == 1:
        place.fault("the ranks' parameters", f"of {len(policies)} kinds after training", "alike", RUN_AGAIN)
    for rank in run.ranks:
        own = place.within(f"rank {rank['rank']}")
        own.same("its columns", sorted(rank["samples"]), sorted(run.ranks[0]["samples"]))
        for check in (check for check in rank["validity"] if check["verdict"] not in _SOUND):
            got = f"a {check['verdict']} ({check['found']}) in a round called completed"
            own.fault(check["name"], got, "no failure", RUN_AGAIN)
    learning = 1 if run.is_pipeline else run.gpus
    known = {"workload": "train", "global_minibatch_size": case["minibatch_size"] * learning, **case}
    for name in (name for name in _OF_THE_CASE if name in workload):
        place.same(f"workload.{name}", workload[name], known[name])
    checks = {check["name"]: check["found"] for check in machine["checks"]}
    if machine["gpus"] and "gpus_present" in checks:
        kinds = [f"{gpu['name']} {gpu['memory_gb']:.0f} GB" for gpu in machine["gpus"]]
        words = [f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds)]
        place.same("the GPUs by env_check", checks["gpus_present"], ", ".join(words))
        place.same("the driver by env_check", checks.get("driver_for_stack"), f"driver {machine['driver_version']}")


# --- one rank ---


def _check_times(place: Place, run: Run, columns: Columns) -> None:
    """Check that iterations follow each other, that parts lie within their whole, and that marks are in rhythm."""
    starts_s, times_s = columns["start_s"], columns["iteration_time_s"]
    most_s = np.diff(starts_s) + SLACK_S + SLACK * times_s[:-1]
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
            least_s = columns[whole] * (1 - SLACK) - SLACK_S if is_all else 0.0
            part_s = np.nansum(parts, axis=0)
            place.between(" and ".join(names), part_s, least_s, columns[whole] * (1 + SLACK) + SLACK_S)
    if "marked" in columns:  # runs of the first days have no such column: all were marked
        marks = (np.arange(len(times_s)) % MARKED_EVERY == FIRST_MARKED).astype(float)
        place.between("marked", np.nan_to_num(columns["marked"], nan=-1), marks, marks)
    for name, column in columns.items():
        if name.startswith(("core_", "all_reduce_")) or name.endswith("_time_s"):
            place.between(name, column, 0, math.inf)


def _check_turns(place: Place, turns: Json | None, columns: Columns) -> None:
    """Check that turns are numbered and as long as the keeper gives them: some 2.5 s at the pace of the turn before."""
    column = columns.get("turn")
    if turns is None or column is None:
        place.same("a column of turns", column is not None, turns is not None)
        return
    begun = column[FIRST_ITERATIONS:]
    numbers, firsts, counts = np.unique(begun, return_index=True, return_counts=True)
    is_early = not np.isnan(column[:FIRST_ITERATIONS]).all()
    if is_early or [*numbers] != [*range(1, turns["turns"] + 1)] or (np.diff(begun) < 0).any():
        expected = f"1 to {turns['turns']}, from iteration {FIRST_ITERATIONS} on"
        place.fault("the numbers of its turns", f"{[*map(float, numbers)]}", expected)
        return
    ends_s, left, wanted = columns["start_s"] + columns["iteration_time_s"], len(begun), LEAST_OF_TURN
    for number, first, count in zip(map(int, numbers), firsts + FIRST_ITERATIONS, map(int, counts), strict=True):
        most = wanted if left - wanted >= LEAST_OF_TURN else left
        place.between(f"iterations of turn {number}", count, min(left, LEAST_OF_TURN), most)
        left -= count
        pace_s = max(SHORTEST_S, (ends_s[first + count - 1] - columns["start_s"][first]) / count)
        wanted = max(LEAST_OF_TURN, round(turns["turn_s"] / pace_s))


def _check_library(place: Place, run: Run, columns: Columns) -> None:
    """Check the library's own frames per second against its own times, and these against ours."""
    together = run.case["trainings_per_gpu"]
    frames = run.case["num_envs_global"] // together * run.case["num_steps_per_env"]  # it knows its own training only
    known = {name: column.copy() for name, column in columns.items()}
    for column in known.values():
        column[[first for first, _ in run.pieces[1:]]] = math.nan  # the library counts the wait for the turn too
    library = next((name for name in ("rl_games", "rsl_rl", "torchrl") if f"{name}.total_fps" in known), None)
    if library is None:
        return
    if library == "rl_games":
        theirs = [frames / known["rl_games.step_inference_fps"], known["rl_games.update_time_s"]]
    else:
        theirs = [known[f"{library}.{name}"] for name in PARTS["iteration_time_s"]]
    total_s = theirs[0] + theirs[1]
    slack_s = LIBRARY_TOLERANCE_S + LIBRARY_TOLERANCE_S * total_s + total_s**2 / frames  # fps may be a whole number
    whole_s = frames / known[f"{library}.total_fps"]
    place.between(f"the iteration by {library}.total_fps", whole_s, total_s - slack_s, total_s + slack_s)
    for name, time_s in zip(PARTS["iteration_time_s"], theirs, strict=True):
        if name in known:
            slack_s = LIBRARY_SLACK * known[name] + SLACK_S * together
            place.between(f"{name} by {library}", time_s, known[name] - slack_s, known[name] + slack_s)


def _check_rank(place: Place, run: Run, rank: Json) -> None:
    """Check what it learned, its settings against its case, its start-up, and its memory."""
    case, workload, settings, samples = run.case, run.record["workload"] or {}, rank["settings"], rank["samples"]
    if case["workload"] == "train" and not _SHA256.fullmatch(rank["parameters_sha256"] or ""):
        place.fault("parameters_sha256", str(rank["parameters_sha256"]), "a SHA-256")
    place.between("success_rate", samples.get("success_rate", ()), 0, 1)
    length_s, dt_s, decimation = (workload.get(name) for name in ("episode_length_s", "env.sim.dt", "decimation"))
    if length_s and dt_s and decimation:
        most = math.ceil(length_s / (dt_s * decimation)) + 1
        place.between("episode_length_mean", samples.get("episode_length_mean", ()), 0, most)
    wanted = {
        "seed": case["seed"] + rank["rank"] + (run.number * run.processes if case["seed_per_run"] else 0),
        "num_envs": case["num_envs"],
        "device": f"cuda:{rank['local_rank'] // run.sharing}" if case["device"] == "cuda" else "cpu",
    }
    if case["cpu_threads"] is not None:
        wanted["torch_num_threads"] = case["cpu_threads"]
    if "cublas_workspace_config" in settings:
        wanted["deterministic_algorithms"] = case["deterministic"]
    wanted |= {f"versions.{name}": version for name, version in (text.split("==") for text in case["with_packages"])}
    names = {gpu["name"] for gpu in run.machine["gpus"]}
    if case["device"] == "cuda" and case["nnodes"] == 1 and settings.get("gpu_name"):
        wanted["gpu_name"] = settings["gpu_name"] if settings["gpu_name"] in names else " or ".join(sorted(names))
        wanted["cuda_driver_version"] = run.machine["cuda_driver_version"]
    for name, value in wanted.items():
        if name in settings:
            place.same(f"settings.{name}", settings[name], value)
    if "imports_torch" in rank["phases_s"]:  # the rank's clock begins after it
        torch_s, last_s = rank["phases_s"]["imports_torch"], samples["start_s"][-1] + samples["iteration_time_s"][-1]
        until_s = sum(rank["phases_s"].values()) - torch_s
        place.between("start-up until its first iteration", until_s, 0, samples["start_s"][0])
        least_s = torch_s + last_s - WALL_SLACK_S
        place.between("wall_time_s around its iterations", run.wall_s, least_s, math.inf)
    place.between("peak_memory_gb", rank["peak_memory_gb"], 0, _most_memory_gb(run, rank))
    place.between("kernels_compiled", rank["kernels_compiled"], int(case["kernel_cache"] == "empty"), math.inf)


def _most_memory_gb(run: Run, rank: Json) -> float:
    """Return the most that a rank can have taken: of its GPU, by the sampler if that saw it; inf if nothing is known.

    Another node than the one that was looked at may have GPUs of other kinds.
    """
    gpus, index = run.machine["gpus"], rank["local_rank"] // run.sharing
    is_other = run.case["nnodes"] > 1 and rank["settings"].get("gpu_name") not in {gpu["name"] for gpu in gpus}
    known = [gpu["memory_gb"] * (1 + MEMORY_SLACK) for gpu in gpus if not is_other and gpu["memory_gb"] is not None]
    most_gb = max(known, default=math.inf)
    for node in run.readings:
        used_gb = [used for used in node["columns"].get(f"gpu{index}.memory_used_gb", ()) if used is not None]
        if node["node"] == (rank["node"] or 0) and used_gb:
            most_gb = min(most_gb, max(used_gb))
    return most_gb


# --- the sampler ---


def _check_telemetry(place: Place, run: Run) -> None:
    """Check its summary: the window against the samples and the time of the run, energy against power."""
    seen, spans, phases_s = run.telemetry, run.window_spans, run.ranks[0]["phases_s"]
    window_s = sum(end_s - start_s for start_s, end_s in spans)
    place.same("window_s", seen["window_s"], window_s, tolerance=TOLERANCE)
    zero_s, imports_s = seen["window_start_unix_s"] - spans[0][0] - run.began_s, phases_s.get("imports_torch", 0.0)
    most_s = min(run.wall_s - spans[-1][1], imports_s + CLOCKS_S) + CLOCKS_S
    place.between("the start of rank 0's clock after that of the run", zero_s, imports_s - CLOCKS_S, most_s)
    is_whole = len(seen["gpus"]) == run.gpus and not seen["missing_nodes"]
    if is_whole or seen["energy_j"] is not None:
        energies = ([gpu[name] for gpu in seen["gpus"]] for name in ("energy_counter_j", "energy_integrated_j"))
        total_j = next((math.fsum(known) for known in energies if known and None not in known), None)
        place.same("energy_j", seen["energy_j"], total_j, tolerance=TOLERANCE)
    frames = run.frames * int(sum(run.columns[0]["start_s"] >= spans[0][0]))
    per_joule = frames / seen["energy_j"] if run.has_frames and seen["energy_j"] else None
    place.same("frames_per_joule", seen["frames_per_joule"], per_joule, tolerance=TOLERANCE)
    parts = [("", seen, seen["gpus"]), *((f"GPU {gpu['index']}: ", gpu, [gpu]) for gpu in seen["gpus"])]
    for name, part, gpus in parts:
        energies_j = [gpu["energy_integrated_j"] for gpu in gpus]
        if energies_j and None not in energies_j and (is_whole or part["power_w"] is not None):
            mean_w, expected_w = part["power_w"] and part["power_w"]["mean"], math.fsum(energies_j) / seen["window_s"]
            place.same(f"{name}power_w.mean", mean_w, expected_w, tolerance=POWER_TOLERANCE)
        if part is not seen and part["energy_counter_j"] is not None and seen["energy_agrees"]:
            place.same(f"{name}energy_counter_j", part["energy_counter_j"], energies_j[0], tolerance=AGREEMENT)
    if (wanted := seen["host_cpu_percent"]) is not None:  # of which a hypervisor took some, and others used some
        most, taken = wanted["mean"] * (1 + TOLERANCE), (seen["host_stolen_percent"] or {"mean": 0.0})["mean"]
        place.between("host_stolen_percent.mean", taken, 0, most)
        if not seen["nodes"]:  # of several it is that of the node with most
            place.between("host_others_percent", seen["host_others_percent"], 0, most - taken)
    for node in run.readings:
        _check_readings(place.within(f"readings of node {node['node']}"), run, node)


def _check_readings(place: Place, run: Run, node: Json) -> None:
    """Check a node's readings: they span the iterations, and those in the window fit the summary of all."""
    seen, times_s = run.telemetry, np.array(node["columns"]["time_s"], float)
    beyond = [int((times_s < run.columns[0]["start_s"][0]).sum()), int((times_s > run.ends_s[-1]).sum())]
    if max(beyond) > 1 or (np.diff(times_s) <= 0).any():
        got = f"{beyond[0]} before and {beyond[1]} after its iterations"
        place.fault("its times", got, "in order, at most one before and one after")
    inside = np.any([(times_s > start_s) & (times_s < end_s) for start_s, end_s in run.window_spans], axis=0)
    gpus = {f"gpu{gpu['index']}": gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]}
    parts = {**gpus, **{f"rank{rank['rank']}": rank for rank in seen["ranks"]}}
    parts["host"] = {name.removeprefix("host_"): value for name, value in seen.items() if name.startswith("host_")}
    for name, column in node["columns"].items():
        part, _, field = name.partition(".")
        summary = parts.get(part, {}).get(field)
        known = [value for value, is_in in zip(column, inside, strict=True) if is_in and value is not None]
        if isinstance(summary, dict) and known:
            slack = TOLERANCE * abs(summary["max"]) + READING_TOLERANCE
            place.between(f"the least {name}", min(known), summary["min"] - slack, math.inf)
            place.between(f"the most {name}", max(known), -math.inf, summary["max"] + slack)
            if not seen["nodes"] and len(known) > 1:
                chance = MEAN_SPREADS * (summary["max"] - summary["min"]) / math.sqrt(len(known)) + slack
                mean = math.fsum(known) / len(known)
                place.between(f"the mean {name}", mean, summary["mean"] - chance, summary["mean"] + chance)
    for name, gpu in gpus.items():
        columns = {field: node["columns"].get(f"{name}.{field}") for field in ("power_w", "energy_j", "slowdowns")}
        _check_gpu(place.within(name), gpu, times_s, inside, columns, run.window_spans)


def _check_gpu(place: Place, gpu: Json, times_s: Array, inside: Array, columns: Json, spans: Spans) -> None:
    """Check the energy of a GPU, by its counter and by its power over time, and whether nothing held it back."""
    if columns["energy_j"] is not None and gpu["energy_counter_j"] is not None and len(spans) == 1:
        start_j, end_j = np.interp(spans[0], times_s, np.array(columns["energy_j"], float))
        expected_j = float(end_j - start_j)
        place.same("energy_j over the window", gpu["energy_counter_j"], expected_j, tolerance=ENERGY_TOLERANCE)
    if columns["power_w"] is not None and gpu["energy_integrated_j"] is not None:
        power_w, integral_j = np.array(columns["power_w"], float), 0.0
        for start_s, end_s in spans:
            points_s = np.array([start_s, *times_s[(times_s > start_s) & (times_s < end_s)], end_s])
            integral_j += float(np.trapezoid(np.interp(points_s, times_s, power_w), points_s))
        got_j = gpu["energy_integrated_j"]
        place.same("power_w over the window", got_j, integral_j, tolerance=INTEGRAL_TOLERANCE)
    texts = [text or "" for text, is_in in zip(columns["slowdowns"] or (), inside, strict=False) if is_in]
    held_back = sorted(HELD_BACK & {word for text in texts for word in text.split("+")})
    if held_back and gpu["throttled_share"] == 0:
        place.fault("throttled_share", "0", f"above it, by a reading: {', '.join(held_back)}")
