"""GENERATED results for tests: shaped like the matrices `smoke` and `full`, measured nowhere.

Every environment is labelled with ``LABEL``, which the report shows wherever it says what the results ran on.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from suite.records.learning_check import LEARNS_WORSE
from suite.schema.record import (
    SCHEMA_VERSION,
    Case,
    CaseResult,
    CheckResult,
    Environment,
    Gpu,
    Outcome,
    RankRecord,
    RlLibrary,
    RunRecord,
    Scaling,
)

LABEL = "generated data, not measured"
TASKS = {"cartpole": "Isaac-Cartpole-Direct", "ant": "Isaac-Ant", "shadow": "Isaac-Reorient-Cube-Shadow-Camera-Direct"}

CPU_HOST = Environment(
    host_label=LABEL,
    cpu_model="Generated Processor",
    num_cpus=2,
    memory_gb=16.0,
    os="Generated Linux",
    kernel="6.1",
    suite_version="0.1.0",
    git_commit="0123456789abcdef0123456789abcdef01234567",
    git_dirty=False,
    asset_sha256="ab" * 32,
)
GPU_HOST = replace(
    CPU_HOST,
    num_cpus=128,
    memory_gb=560.0,
    gpus=tuple(
        Gpu(index=index, name="Generated Accelerator", memory_gb=150.0, compute_capability="9.0") for index in range(8)
    ),
    driver_version="580.00",
    cuda_driver_version="13.0",
    worker_pins_sha256="cd" * 32,
)


def make_case(
    series: str = "cartpole-strong",
    *,
    world_size: int = 1,
    scaling: Scaling = "strong",
    rl_library: RlLibrary = "rsl_rl",
    num_envs_global: int = 128,
    nnodes: int = 1,
    variant: str = "",
    **changes: object,
) -> Case:
    nproc_per_node = world_size // nnodes
    device = changes.get("device", "cpu")
    suffix = "-cpu" if device == "cpu" else ""
    case_id = f"{series}/{rl_library}-kitless{suffix}-n{num_envs_global}-{nnodes}x{nproc_per_node}"
    case = Case(
        case_id=case_id + (f"-{variant}" if variant else ""),
        series=series,
        scaling=scaling,
        task=TASKS[series.partition("-")[0]],
        rl_library=rl_library,
        stack="kitless",
        device="cpu",
        nnodes=nnodes,
        nproc_per_node=nproc_per_node,
        num_envs=num_envs_global // world_size,
        num_envs_global=num_envs_global,
        num_steps_per_env=16,
        iterations=12,
        minibatch_rule="fixed_minibatch",
        minibatch_size=512,
        optimiser_steps=4,
        seed=42,
        assets="offline",
    )
    return replace(case, **changes)  # type: ignore[arg-type]


def make_rank(case: Case, *, rank: int, iteration_time_s: float, seed: int = 0) -> RankRecord:
    """A rank whose first iteration is ten times as slow; every later one has exactly ``iteration_time_s``."""
    times_s = [10 * iteration_time_s] + [iteration_time_s] * (case.iterations - 1)
    multi = case.world_size > 1
    return RankRecord(
        rank=rank,
        local_rank=rank % case.nproc_per_node,
        phases_s={"imports": 4.0, "environment_creation": 6.0},
        settings={
            "seed": case.seed + rank,
            "backend": ("gloo" if case.device == "cpu" else "nccl") if multi else None,
            "versions.isaaclab": "3.0.0",
            "versions.torch": "2.11.0",
        },
        samples={
            "start_s": tuple(sum(times_s[:index]) for index in range(len(times_s))),
            "iteration_time_s": tuple(times_s),
            "collection_time_s": tuple(0.7 * time_s for time_s in times_s),
            "learning_time_s": tuple(0.29 * time_s for time_s in times_s),
            "environment_step_time_s": tuple(0.5 * time_s for time_s in times_s),
            "all_reduce_time_s": tuple(0.1 * time_s if multi else None for time_s in times_s),
            "all_reduce_calls": tuple(4.0 if multi else None for _ in times_s),
            "reward_mean": (
                None,
                *(4 * (1 - math.exp(-index / 4)) + 0.1 * math.sin(index + seed) for index in range(1, case.iterations)),
            ),
            "episode_length_mean": (None,) * case.iterations,
            "success_rate": (None,) * case.iterations,
        },
        parameters_sha256="ef" * 32,
        peak_memory_gb=None if case.device == "cpu" else 2.5,
    )


def make_record(
    case: Case,
    *,
    index: int = 0,
    iteration_time_s: float | Sequence[float] = 0.5,
    outcome: Outcome = "completed",
    reason: str | None = None,
) -> RunRecord:
    """``iteration_time_s``: of every rank, or one value per rank. A round that did not complete has no ranks."""
    times_s = [iteration_time_s] * case.world_size if isinstance(iteration_time_s, float) else list(iteration_time_s)
    ranks = [make_rank(case, rank=rank, iteration_time_s=time_s, seed=index) for rank, time_s in enumerate(times_s)]
    completed = outcome == "completed"
    return RunRecord(
        case=case,
        round=index,
        outcome=outcome,
        reason=reason,
        exit_code=0 if completed else (None if outcome == "skipped" else 1),
        started_utc=None if outcome == "skipped" else f"2026-11-21T10:{index:02d}:00Z",
        wall_time_s=None if outcome == "skipped" else 60.0,
        environment=CPU_HOST if case.device == "cpu" else GPU_HOST,
        argv=("torchrun", "-m", "tasks.worker"),
        ranks=tuple(ranks) if completed else (),
    )


def make_result(case: Case, *times_s: float) -> CaseResult:
    """A completed round per time."""
    return CaseResult(
        case=case,
        rounds=tuple(make_record(case, index=index, iteration_time_s=time_s) for index, time_s in enumerate(times_s)),
    )


def failed_result(case: Case, *, outcome: Outcome, reason: str) -> CaseResult:
    return CaseResult(case=case, rounds=(make_record(case, outcome=outcome, reason=reason),))


def held_to_a_reference(result: CaseResult, *, also: str | None = None) -> CaseResult:
    """The result as stored when its reward is below the catalog's reference; ``also`` names a second failed check."""
    found = "the reward is 1; at least 15 is known of iteration 20"
    checks = [CheckResult(name="learning", feature="learning", verdict="failure", found=found, fault=LEARNS_WORSE)]
    if also:
        checks.append(CheckResult(name=also, feature="physics", verdict="failure", found="x", fault="x"))
    (record,) = result.rounds
    ranks = (replace(record.ranks[0], validity=tuple(checks)), *record.ranks[1:])
    reason = f"rank 0: learning: {found} ({LEARNS_WORSE})"
    return replace(result, rounds=(replace(record, outcome="invalid", reason=reason, ranks=ranks),))


def smoke_results() -> list[CaseResult]:
    """Results like the matrix `smoke` on a CPU: four series, one and two ranks, one round; one case failed."""
    shapes: Mapping[str, tuple[Scaling, RlLibrary, int]] = {
        "cartpole-strong": ("strong", "rl_games", 128),
        "cartpole-weak": ("weak", "rsl_rl", 64),
        "ant-weak": ("weak", "rsl_rl", 32),
        "shadow-horizontal": ("weak", "rsl_rl", 4),
    }
    results = []
    for series, (scaling, library, size) in shapes.items():
        for ranks in (1, 2):
            case = make_case(
                series,
                world_size=ranks,
                scaling=scaling,
                rl_library=library,
                num_envs_global=size if scaling == "strong" else size * ranks,
            )
            if series == "shadow-horizontal" and ranks == 2:
                reason = "RuntimeError: generated failure of rank 1: out of shared memory"
                results.append(failed_result(case, outcome="crashed", reason=reason))
            else:
                results.append(make_result(case, 0.46 / ranks**0.6 if scaling == "strong" else 0.46 * ranks**0.2))
    return results


def on_gpus(results: Sequence[CaseResult]) -> list[CaseResult]:
    """The same as if GPUs had made them, so that a report says something of their speed."""

    def moved(case: Case) -> Case:
        return replace(case, device="cuda", case_id=case.case_id.replace("-cpu-", "-"))

    return [
        result
        if result.case.device == "cuda"
        else replace(
            result,
            case=moved(result.case),
            rounds=tuple(replace(one, case=moved(one.case), environment=GPU_HOST) for one in result.rounds),
        )
        for result in results
    ]


def full_results() -> list[CaseResult]:
    """Results like `full` on eight GPUs: two series, two libraries, three rounds; one round and one case failed."""
    libraries: tuple[RlLibrary, RlLibrary] = ("rl_games", "rsl_rl")
    shapes: tuple[tuple[str, Scaling], ...] = (("cartpole-strong", "strong"), ("ant-weak", "weak"))
    results = [
        _gpu_result(series, scaling, library, ranks)
        for series, scaling in shapes
        for library in libraries
        for ranks in (1, 2, 4, 8)
    ]
    infeasible = make_case("ant-weak", world_size=16, scaling="weak", num_envs_global=16384, device="cuda")
    reason = "needs 16 GPUs of one host, this one has 8"
    results.append(failed_result(infeasible, outcome="skipped", reason=reason))
    return results


def _gpu_result(series: str, scaling: Scaling, library: RlLibrary, ranks: int) -> CaseResult:
    case = make_case(
        series,
        world_size=ranks,
        scaling=scaling,
        rl_library=library,
        num_envs_global=8192 if scaling == "strong" else 1024 * ranks,
        device="cuda",
    )
    serial = 0.1 if library == "rl_games" else 0.04
    one_rank_s = 0.31 if library == "rl_games" else 0.22
    factor = serial + (1 - serial) / ranks if scaling == "strong" else 1 + serial * math.log2(ranks) * 2
    rounds = []
    for index in range(3):
        skewed = [one_rank_s * factor * (1 + 0.03 * index) * (1 + 0.01 * rank / ranks) for rank in range(ranks)]
        rounds.append(make_record(case, index=index, iteration_time_s=skewed))
    if library == "rl_games" and ranks == 8:
        rounds[1] = make_record(case, index=1, outcome="hung", reason="no sample for 300 s; ranks 3 and 5 were silent")
    return CaseResult(case=case, rounds=tuple(rounds))


def sweep_results(rounds: int = 3) -> list[CaseResult]:
    """Results like the matrix `env-sweep` on one GPU: throughput stops rising at 4096 environments."""
    times_s = {1024: 0.10, 2048: 0.11, 4096: 0.15, 8192: 0.30}
    return [
        make_result(
            make_case("ant-envs", scaling="weak", num_envs_global=num_envs, device="cuda"),
            *(time_s * (1 + 0.001 * index) for index in range(rounds)),
        )
        for num_envs, time_s in times_s.items()
    ]


def stack_results(rounds: int = 3) -> list[CaseResult]:
    """Results like the matrix `physx` on one and two GPUs: PhysX takes twice as long as Newton."""
    found = []
    for ranks in (1, 2):
        newton = make_case(
            "cartpole-physics", world_size=ranks, scaling="weak", num_envs_global=4096 * ranks, device="cuda"
        )
        physx = replace(newton, case_id=newton.case_id.replace("kitless", "ovphysx"), stack="ovphysx")
        times_s = [0.5 * (1 + 0.001 * index) for index in range(rounds)]
        found += [make_result(newton, *times_s), make_result(physx, *(2 * time_s for time_s in times_s))]
    return found


def node_results(rounds: int = 3) -> list[CaseResult]:
    """Four GPUs on one node and on two, where an iteration takes a quarter longer; one GPU as the baseline."""
    found = []
    for ranks, nnodes, time_s in ((1, 1, 0.5), (4, 1, 0.6), (4, 2, 0.75)):
        case = make_case(
            "ant-weak", world_size=ranks, nnodes=nnodes, scaling="weak", num_envs_global=1024 * ranks, device="cuda"
        )
        found.append(make_result(case, *(time_s * (1 + 0.001 * index) for index in range(rounds))))
    return found


def write_results(results: Sequence[CaseResult], folder: Path) -> Path:
    """Write what ``suite.records.store.load_results`` reads, without a pytest session per case."""
    for result in results:
        path = folder / "cases" / f"{result.case.case_id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"schema_version": SCHEMA_VERSION, "case_result": asdict(result)}
        path.write_text(json.dumps({"labscale": stored}), encoding="utf-8")
    return folder
