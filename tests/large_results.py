"""GENERATED results of many GPUs: shaped and sized like a real campaign's, measured nowhere, the same every time.

Ranks have every column that labscale measures, one of four iterations is marked, and each rank is a little slower or
faster than the others, so that skew, splits and intervals are computed as they would be.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.records.store import write_case
from suite.schema.record import SAMPLE_COLUMNS, Case, CaseResult, CheckResult, RankRecord, RunRecord
from tests.generated_results import GPU_HOST, write_results

ROUNDS = 3
GPUS_PER_NODE = 8
MARKED_EVERY, FIRST_MARKED = 4, 2
WARM_UP = 10  # the first iteration compiles kernels
VALIDITY = (
    CheckResult(name="physics_is_finite", feature="physics", verdict="ok", found="all states are finite", fault=None),
)


def write_matrix(folder: Path, *, most_gpus: int) -> Path:
    """A strong and a weak series of two libraries on 1, 2, 4, 8 GPUs and then whole nodes, with A/A twins."""
    counts = [2**power for power in range(most_gpus.bit_length())]
    topologies = [f"1x{count}" if count <= GPUS_PER_NODE else f"{count // 8}x8" for count in counts]
    tables = "".join(
        f"""
[[series]]
name = "{name}"
title = "Generated, {scaling}"
scaling = "{scaling}"
task = "{task}"
rl_libraries = {libraries}
num_envs = {num_envs}
topologies = {topologies}
iterations = 40
minibatch_rule = "fixed_updates"
"""
        for name, scaling, task, libraries, num_envs in (
            ("cartpole-strong", "strong", "Isaac-Cartpole-Direct", ["rl_games", "rsl_rl"], 128 * most_gpus),
            ("ant-weak", "weak", "Isaac-Ant", ["rl_games", "rsl_rl"], 2048),
        )
    )
    path = folder / f"up-to-{most_gpus}.toml"
    path.write_text(f'description = "Generated"\nrounds = {ROUNDS}\na_a = true\nseed = 42\n{tables}', encoding="utf-8")
    return path


def cases_of(matrix: Path) -> list[Case]:
    catalog = load_catalog()
    return expand(load_matrix(matrix, catalog), catalog, device="cuda", assets="offline")


def large_result(case: Case) -> CaseResult:
    return CaseResult(
        case=case, rounds=tuple(_record(case, index) for index in range(ROUNDS)), ended_because="generated rounds end"
    )


def write_large_results(folder: Path, *, most_gpus: int, whole_store: bool) -> Path:
    """Write every case's results. ``whole_store``: all as ``bench`` stores them, which takes long, not one alone."""
    results = folder / "results"
    for case in cases_of(write_matrix(folder, most_gpus=most_gpus)):
        if whole_store or (case.world_size == most_gpus and case.rl_library == "rsl_rl"):
            write_case(large_result(case), results / "cases" / f"{case.case_id}.json")
        else:
            write_results([large_result(case)], results)
    return results


def _record(case: Case, index: int) -> RunRecord:
    draw = random.Random(f"{case.case_id} {index}")  # noqa: S311 - jitter, not secrets
    serial = 0.05 if case.rl_library == "rl_games" else 0.02
    share = serial + (1 - serial) / case.world_size if case.scaling == "strong" else 1.0
    work_s = 0.5 * share * draw.uniform(0.995, 1.005)
    own = [[work_s * (1 + draw.expovariate(50)) for _ in range(case.iterations)] for _ in range(case.world_size)]
    slowest = [max(times) for times in zip(*own, strict=True)]
    return RunRecord(
        case=case,
        round=index,
        outcome="completed",
        reason=None,
        exit_code=0,
        started_utc=f"2026-11-21T{10 + index:02d}:{case.world_size.bit_length():02d}:00Z",
        wall_time_s=120.0,
        environment=GPU_HOST,
        argv=("torchrun", "-m", "tasks.worker"),
        ranks=tuple(_rank(case, rank, times, slowest) for rank, times in enumerate(own)),
        workload={"task": case.task, "workload": case.workload},
        telemetry_note="generated rounds have none",
    )


def _rank(case: Case, rank: int, own_s: Sequence[float], slowest_s: Sequence[float]) -> RankRecord:
    rows = list(_rows(case, own_s, slowest_s))
    return RankRecord(
        rank=rank,
        local_rank=rank % case.nproc_per_node,
        phases_s={"imports_torch": 3.0, "imports": 8.0, "environment_creation": 12.0},
        settings={
            "seed": case.seed + rank,
            "backend": "nccl",
            "versions.isaaclab": "3.0.0",
            "versions.torch": "2.11.0",
        },
        samples={name: tuple(row[name] for row in rows) for name in SAMPLE_COLUMNS},
        validity=VALIDITY,
        parameters_sha256="ef" * 32,
        peak_memory_gb=2.5,
    )


def _rows(case: Case, own_s: Sequence[float], slowest_s: Sequence[float]) -> Iterator[dict[str, float | None]]:
    """All ranks end an iteration together: who is quick waits in all-reduce."""
    start_s = 0.0
    several = case.world_size > 1
    for index, (work_s, last_s) in enumerate(zip(own_s, slowest_s, strict=True)):
        factor = WARM_UP if index == 0 else 1
        reduce_s = 0.002 * case.world_size.bit_length() if several else 0.0
        whole_s = factor * (last_s + reduce_s)
        marked = index % MARKED_EVERY == FIRST_MARKED
        yield {
            "start_s": start_s,
            "iteration_time_s": whole_s,
            "collection_time_s": 0.7 * factor * work_s,
            "learning_time_s": whole_s - 0.7 * factor * work_s,
            "marked": float(marked),
            "environment_step_time_s": 0.5 * factor * work_s if marked else None,
            "simulate_time_s": 0.4 * factor * work_s if marked else None,
            "render_time_s": None,
            "inference_time_s": 0.1 * factor * work_s if marked else None,
            "all_reduce_time_s": factor * (last_s - work_s + reduce_s) if marked and several else None,
            "all_reduce_calls": float(case.optimiser_steps) if marked and several else None,
            "all_reduce_bytes": 4.0 * 2_500_000 * case.optimiser_steps if marked and several else None,
            "core_probe_time_s": 1e-4 if marked else None,
            "reward_mean": None if index == 0 else 4 - 4 / (1 + index),
            "episode_length_mean": None if index == 0 else 100.0,
            "success_rate": None,
        }
        start_s += whole_s
