"""One run: its ranks against each other, its case, its machine and its own clock. Pure."""

import math
from typing import Final

from reports.verification.finding import OR_LIST, RUN_AGAIN, Json, Place, counted
from reports.verification.samples.rank import check_rank
from reports.verification.samples.telemetry import check_telemetry

# What a fingerprint of the work and a case both say.
_OF_THE_CASE: Final = (
    "task", "workload", "assets", "rl_library", "num_steps_per_env", "minibatch_rule", "minibatch_size",
    "global_minibatch_size", "optimiser_steps",
)  # fmt: skip
_SOUND: Final = ("ok", "warning", "not_needed", "not_checked")  # verdicts of a check in a completed run
WALL_SLACK_S: Final = 1.0
MEMORY_SLACK: Final = 0.01  # the size of a GPU's memory is stored to 0.1 GB


def world_size(case: Json) -> int:
    return int(case["nnodes"] * case["nproc_per_node"])


def processes(case: Json) -> int:
    """Return how many ranks a record has: those of each of the trainings, or of a pipeline."""
    return world_size(case) * sharing(case)


def is_pipeline(case: Json) -> bool:
    """Tell whether one process simulates while another one learns."""
    return bool(case["workload"] == "async_pipeline")


def sharing(case: Json) -> int:
    """Return how many processes share a GPU: trainings, or the two of a pipeline that has one GPU."""
    return 2 if is_pipeline(case) and world_size(case) == 1 else int(case["trainings_per_gpu"])


def counts(record: Json) -> bool:
    return record["outcome"] == "completed" and not record["profiled_ranks"]


def check_round(place: Place, record: Json) -> bool:
    """Check one run; return whether it has a number, if it has completed."""
    if record["outcome"] != "completed":
        _check_incomplete(place, record)
    if not counts(record):
        return True
    numbers = [rank["rank"] for rank in record["ranks"]]
    if numbers != list(range(processes(record["case"]))):
        expected = f"{counted(processes(record['case']), 'rank')}, each once and in order"
        place.fault("its ranks", str(numbers), expected, RUN_AGAIN)
        return False
    ranks = [(place.within(f"rank {rank['rank']}"), rank) for rank in record["ranks"]]
    are_complete = [check_rank(of_rank, rank, record) for of_rank, rank in ranks]
    if not all(are_complete):
        return False
    is_sound = _is_sound(place, record)
    _check_case(place, record)
    _check_machine(place, record)
    for of_rank, rank in ranks:
        _check_like_first(of_rank, rank, record["ranks"][0])
        _check_settings(of_rank, rank, record)
        _check_start(of_rank, rank, record)
    if record["telemetry"] is not None:
        check_telemetry(place.within("telemetry"), record)
    return is_sound


def _check_incomplete(place: Place, record: Json) -> None:
    """Check that a run that was skipped never began, and that something shows why another one failed."""
    if not record["reason"]:
        place.fault(f"the reason of an outcome, {record['outcome']},", "missing", "given")
    if record["outcome"] == "skipped":
        parts = ("started_utc", "wall_time_s", "ranks", "telemetry", "readings", "exit_code")
        if there := [name for name in parts if record.get(name)]:
            place.fault("a skipped run", f"with {', '.join(there)}", "without: it never began")
        return
    policies = {rank["parameters_sha256"] for rank in record["ranks"]}
    is_whole = bool(record["ranks"]) and all(
        len(rank["samples"].get("iteration_time_s", ())) == record["case"]["iterations"]
        and not rank["error"]
        and all(check["verdict"] in _SOUND for check in rank["validity"])
        for rank in record["ranks"]
    )
    if is_whole and policies != {None} and (len(policies) == 1 or record["case"]["trainings_per_gpu"] > 1):
        got = f"{record['outcome']}, though every rank ended its training and no check failed"
        place.fault("its outcome", got, "completed, or a sign of the failure", OR_LIST)


def _is_sound(place: Place, record: Json) -> bool:
    """Check that a campaign would have called this run completed: no check failed, and all ranks have one policy."""
    before = len(place.findings)
    place.same("exit_code", record["exit_code"] or 0, 0, RUN_AGAIN)
    policies = {rank["parameters_sha256"] for rank in record["ranks"] if rank["parameters_sha256"]}
    if len(policies) > 1 and record["case"]["trainings_per_gpu"] == 1:
        place.fault("the ranks' parameters", f"of {len(policies)} kinds after training", "alike", RUN_AGAIN)
    for rank in record["ranks"]:
        for check in rank["validity"]:
            if check["verdict"] not in _SOUND:
                got = f"a {check['verdict']} ({check['found']}) in a round called completed"
                place.within(f"rank {rank['rank']}").fault(check["name"], got, "no failure", RUN_AGAIN)
    return len(place.findings) == before


def _check_like_first(place: Place, rank: Json, first: Json) -> None:
    """Check that every rank has the same columns, turns and marks, and gives the same into the same all-reduces."""
    place.same("its columns", sorted(rank["samples"]), sorted(first["samples"]))
    for column in ("marked", "turn", "all_reduce_calls", "all_reduce_bytes"):
        place.same(column, rank["samples"].get(column), first["samples"].get(column))


def _check_case(place: Place, record: Json) -> None:
    """Check the fingerprint of the work against the case."""
    case, workload = record["case"], record["workload"] or {}
    learning = 1 if is_pipeline(case) else world_size(case)
    known = {"workload": "train", "global_minibatch_size": case["minibatch_size"] * learning, **case}
    for key in _OF_THE_CASE:
        if key in workload:
            place.same(f"workload.{key}", workload[key], known[key])


def _check_machine(place: Place, record: Json) -> None:
    """Check that the record, its env_check, and its ranks name one GPU, one driver and one CUDA."""
    machine, case = record["environment"], record["case"]
    checks, gpus = {check["name"]: check["found"] for check in machine["checks"]}, machine["gpus"]
    if gpus and "gpus_present" in checks:
        kinds = [f"{gpu['name']} {gpu['memory_gb']:.0f} GB" for gpu in gpus]
        words = [f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds)]
        place.same("the GPUs by env_check", checks["gpus_present"], ", ".join(words))
        place.same("the driver by env_check", checks.get("driver_for_stack"), f"driver {machine['driver_version']}")
    names = {gpu["name"] for gpu in gpus}
    for rank in record["ranks"] if case["device"] == "cuda" and case["nnodes"] == 1 else ():
        name, cuda = (rank["settings"].get(key) for key in ("gpu_name", "cuda_driver_version"))
        if name is not None and names and name not in names:
            place.fault("settings.gpu_name", name, " or ".join(sorted(names)))
        if cuda is not None:
            place.same("settings.cuda_driver_version", cuda, machine["cuda_driver_version"])


def _check_settings(place: Place, rank: Json, record: Json) -> None:
    case, settings = record["case"], rank["settings"]
    seeds_before = record["round"] * processes(case) if case["seed_per_round"] else 0
    wanted = {
        "seed": case["seed"] + rank["rank"] + seeds_before,
        "num_envs": case["num_envs"],
        "device": f"cuda:{rank['local_rank'] // sharing(case)}" if case["device"] == "cuda" else "cpu",
    }
    if case["cpu_threads"] is not None:
        wanted["torch_num_threads"] = case["cpu_threads"]
    if "cublas_workspace_config" in settings:
        wanted["deterministic_algorithms"] = case["deterministic"]
    packages = (package.partition("==") for package in case["with_packages"])
    wanted |= {f"versions.{name}": version for name, _, version in packages}
    for name, value in wanted.items():
        if name in settings:
            place.same(f"settings.{name}", settings[name], value)


def _check_start(place: Place, rank: Json, record: Json) -> None:
    """Check that start-up lies before the first iteration, all of them within the run, and memory within a GPU."""
    phases_s, samples = rank["phases_s"], rank["samples"]
    if "imports_torch" in phases_s:  # the rank's clock begins after it
        torch_s, last_s = phases_s["imports_torch"], samples["start_s"][-1] + samples["iteration_time_s"][-1]
        until_s = sum(phases_s.values()) - torch_s
        place.between("start-up until its first iteration", until_s, 0, samples["start_s"][0], "s")
        least_s = torch_s + last_s - WALL_SLACK_S
        place.between("wall_time_s around its iterations", record["wall_time_s"], least_s, math.inf, "s")
    place.between("peak_memory_gb", rank["peak_memory_gb"], 0, most_memory_gb(record, rank), "GB")
    least = 1 if record["case"]["kernel_cache"] == "empty" else 0
    place.between("kernels_compiled", rank["kernels_compiled"], least, math.inf)


def most_memory_gb(record: Json, rank: Json) -> float:
    """Return the most that a rank can have taken: of its GPU, by the sampler if that saw it; inf if nothing is known.

    Another node than the one that was looked at may have GPUs of other kinds.
    """
    gpus = record["environment"]["gpus"]
    is_other = record["case"]["nnodes"] > 1 and rank["settings"].get("gpu_name") not in {gpu["name"] for gpu in gpus}
    known = [] if is_other else [gpu["memory_gb"] for gpu in gpus if gpu["memory_gb"] is not None]
    most_gb = max(known) * (1 + MEMORY_SLACK) if known else math.inf
    index = rank["local_rank"] // sharing(record["case"])
    for node in record.get("readings") or ():
        used_gb = [used for used in node["columns"].get(f"gpu{index}.memory_used_gb", ()) if used is not None]
        if node["node"] == (rank["node"] or 0) and used_gb:
            most_gb = min(most_gb, max(used_gb))
    return most_gb
