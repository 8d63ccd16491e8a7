"""Everything a completed round says besides its samples, against its case, its workload and its machine. Pure."""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from reports.verification.finding import RUN_AGAIN, Finding, Json, differing, outside

# What a fingerprint of the work and a case both say.
_OF_THE_CASE: Final = (
    "task", "workload", "assets", "rl_library", "num_steps_per_env", "minibatch_rule", "minibatch_size",
    "global_minibatch_size", "optimiser_steps",
)  # fmt: skip
_OF_A_RANK: Final = {"seed", "device", "gpu_name"}
_OF_A_SIMULATOR: Final = {"cuda_graph"}  # in a pipeline the rank that learns makes no physics step
CLOCKS_S: Final = 60.0  # the wall clock of a node may differ by this from that of the host that started the round
WALL_SLACK_S: Final = 1.0
MEMORY_SLACK: Final = 0.01  # the size of a GPU's memory is stored to 0.1 GB


def check_facts(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check outcome, settings, places, times, memory, clocks and transport."""
    yield from _check_outcome(where, at, record)
    for rank in record["ranks"]:
        name = f"{at}, rank {rank['rank']}"
        yield from _check_settings(where, name, rank, record)
        yield from _check_rank_facts(where, name, rank, record)
    case, workload = record["case"], record["workload"] or {}
    for key in ("minibatch_size", "optimiser_steps"):  # 0 in a case that was skipped
        yield from outside(where, f"{at}: case.{key}", case[key], 1, math.inf)
    learning = 1 if is_pipeline(case) else world_size(case)
    said = {"workload": "train", "global_minibatch_size": case["minibatch_size"] * learning, **case}
    for key in _OF_THE_CASE:
        if key in workload:
            yield from differing(where, f"{at}: workload.{key}", workload[key], said[key])
    yield from _check_places(where, at, record)
    yield from _check_window(where, at, record)
    yield from _check_clocks(where, at, record)
    yield from _check_transport(where, at, record)


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
    return 2 if is_pipeline(case) and world_size(case) == 1 else trainings(case)


def trainings(case: Json) -> int:
    """Return how many trainings share a GPU."""
    return int(case["trainings_per_gpu"])


def _check_outcome(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check that a campaign would have called this round completed."""
    if record["exit_code"]:
        got = f"{record['exit_code']} in a round called completed"
        yield Finding(where=where, what=f"{at}: exit_code", got=got, expected="0", next_step=RUN_AGAIN)
    policies = {rank["parameters_sha256"] for rank in record["ranks"] if rank["parameters_sha256"]}
    if len(policies) > 1 and trainings(record["case"]) == 1:
        got = f"of {len(policies)} kinds after training"
        yield Finding(where=where, what=f"{at}: the ranks' parameters", got=got, expected="alike", next_step=RUN_AGAIN)
    for rank in record["ranks"]:
        for check in rank["validity"]:
            if check["verdict"] == "failure":
                what = f"{at}, rank {rank['rank']}: {check['name']}"
                got = f"a failure ({check['found']}) in a round called completed"
                yield Finding(where=where, what=what, got=got, expected="no failure", next_step=RUN_AGAIN)


def _check_settings(where: str, at: str, rank: Json, record: Json) -> Iterator[Finding]:
    case, workload, settings = record["case"], record["workload"] or {}, rank["settings"]
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
    named = {"decimation": "decimation", "physics_dt_s": "env.sim.dt"}
    wanted |= {name: workload[key] for name, key in named.items() if key in workload}
    for name, value in wanted.items():
        if name in settings:
            yield from differing(where, f"{at}: settings.{name}", settings[name], value)
    # Ranks of one node see the same machine, whose GPUs may be of several kinds.
    like = next(other["settings"] for other in record["ranks"] if other["node"] == rank["node"])
    own = _OF_A_RANK | (_OF_A_SIMULATOR if is_pipeline(case) else set())
    for name in sorted({*settings, *like} - own):
        yield from differing(where, f"{at}: settings.{name}", settings.get(name), like.get(name))


def _check_rank_facts(where: str, at: str, rank: Json, record: Json) -> Iterator[Finding]:
    """Check that start-up and iterations lie within the round, and allocated memory within a GPU."""
    for name, phase_s in rank["phases_s"].items():
        yield from outside(where, f"{at}: phases_s.{name}", phase_s, 0, math.inf, unit="s")
    starts_s, times_s = (rank["samples"].get(name, []) for name in ("start_s", "iteration_time_s"))
    if starts_s and None not in starts_s and len(starts_s) == len(times_s):
        least_s = sum(rank["phases_s"].values()) + starts_s[-1] + times_s[-1] - starts_s[0] - WALL_SLACK_S
        what = f"{at}: wall_time_s around its start-up and iterations"
        yield from outside(where, what, record["wall_time_s"], least_s, math.inf, unit="s")
    most_gb = most_memory_gb(record, rank)
    if most_gb is not None:
        yield from outside(where, f"{at}: peak_memory_gb", rank["peak_memory_gb"], 0, most_gb, unit="GB")
    yield from outside(where, f"{at}: kernels_compiled", rank["kernels_compiled"], 0, math.inf)
    yield from _check_compilation(where, at, rank, record)


def _check_compilation(where: str, at: str, rank: Json, record: Json) -> Iterator[Finding]:
    """Check that a cold start compiled kernels, and that exactly the ranks that compiled took time for it."""
    modules, time_s = rank["warp_modules_compiled"], rank["warp_compile_time_s"]
    if record["case"]["kernel_cache"] == "empty":
        what = f"{at}: kernels_compiled of a round that began with an empty kernel cache"
        yield from outside(where, what, rank["kernels_compiled"], 1, math.inf, next_step=RUN_AGAIN)
    yield from outside(where, f"{at}: warp_compile_time_s", time_s, 0, math.inf, unit="s")
    if (modules is None) != (time_s is None) or (modules == 0) != (time_s == 0):
        got, expected = f"{time_s} s for {modules} modules", "a time above 0 for modules, 0 for none, or both unknown"
        what = f"{at}: warp_compile_time_s beside warp_modules_compiled"
        yield Finding(where=where, what=what, got=got, expected=expected)


def most_memory_gb(record: Json, rank: Json | None) -> float | None:
    """Return the memory of the node's largest GPU; None if unknown, and for a GPU of a kind that the node lacks."""
    gpus = record["environment"]["gpus"]
    names = {gpu["name"] for gpu in gpus}
    if rank and record["case"]["nnodes"] > 1 and rank["settings"].get("gpu_name") not in names:
        return None
    known = [gpu["memory_gb"] for gpu in gpus if gpu["memory_gb"] is not None]
    return max(known) * (1 + MEMORY_SLACK) if known else None


def _check_places(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check that every node has as many ranks as it has processes, in a row."""
    case = record["case"]
    per_node, nnodes = processes(case) // case["nnodes"], case["nnodes"]
    for rank in record["ranks"]:
        what = f"{at}, rank {rank['rank']}: local_rank"
        yield from differing(where, what, rank["local_rank"], rank["rank"] % per_node)
    nodes = [rank["node"] for rank in record["ranks"]]
    if None in nodes:
        return
    rows = [{*nodes[first : first + per_node]} for first in range(0, len(nodes), per_node)]
    if any(len(row) > 1 for row in rows) or sorted({*nodes}) != list(range(nnodes)) or len(rows) != nnodes:
        expected = f"one for every {per_node} ranks, 0 to {nnodes - 1}"
        yield Finding(where=where, what=f"{at}: the nodes of the ranks", got=str(nodes), expected=expected)


def _check_window(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check that the window lies within the round, after start-up."""
    seen = record["telemetry"]
    if seen is None or record["started_utc"] is None or record["wall_time_s"] is None:
        return
    started_s = datetime.fromisoformat(record["started_utc"]).timestamp()
    starts_up_s = min((sum(rank["phases_s"].values()) for rank in record["ranks"]), default=0.0)
    after_s, most_s = seen["window_start_unix_s"] - started_s, record["wall_time_s"] - seen["window_s"] + CLOCKS_S
    what = f"{at}: telemetry.window_start_unix_s after the round's start"
    yield from outside(where, what, after_s, starts_up_s - CLOCKS_S, most_s, unit="s")


def _check_clocks(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check that the offset in the middle of a round is at most half its drift from that at an end."""
    clocks = record["clocks"] or ()
    first = next((rank["node"] for rank in record["ranks"] if rank["rank"] == 0), None)
    others = {rank["node"] for rank in record["ranks"]} - {first, None}
    nodes = [clock["node"] for clock in clocks]
    if first is not None and (len({*nodes}) < len(nodes) or not others >= {*nodes}):
        expected = f"each once, of {sorted(others)}"
        yield Finding(where=where, what=f"{at}: the nodes of clocks", got=str(nodes), expected=expected)
    for clock in clocks:
        here, bound_s = f"{at}: the clock of node {clock['node']}", clock["bound_s"]
        yield from outside(where, f"{here}: bound_s", bound_s, abs(clock["drift_s"] or 0.0) / 2, math.inf, unit="s")
        if record["transport"] and record["transport"]["emulated"]:  # it is the same clock
            yield from outside(where, f"{here}: offset_s", clock["offset_s"], -bound_s, bound_s, unit="s")


def _check_transport(where: str, at: str, record: Json) -> Iterator[Finding]:
    transport = record["transport"]
    if transport is None:
        return
    yield from outside(where, f"{at}: transport.unread_lines", transport["unread_lines"], 0, math.inf)
    ranks = world_size(record["case"])
    for index, route in enumerate(transport["routes"]):
        here = f"{at}: transport.routes[{index}]"
        yield from outside(where, f"{here}.pairs", route["pairs"], 1, ranks * (ranks - 1))
        yield from outside(where, f"{here}.channels", route["channels"], route["pairs"], math.inf)
