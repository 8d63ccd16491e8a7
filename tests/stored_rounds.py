"""Rounds as tests write them by hand, and what the store makes of them."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from suite.records import store
from suite.schema.record import Case, CaseResult, Environment, Gpu, Outcome, RankRecord, RunRecord

ENVIRONMENT = Environment(
    host_label="desk",
    cpu_model="Example CPU",
    num_cpus=2,
    memory_gb=25.0,
    os="Linux",
    kernel="6.1",
    gpus=(Gpu(index=0, name="Example GPU", memory_gb=150.0, compute_capability="9.0"),),
    driver_version="580.1",
    cuda_driver_version="13.0",
    suite_version="0.1.0",
    git_commit="0" * 40,
    git_dirty=False,
    asset_sha256="ab" * 32,
)
RecordMaker = Callable[..., RunRecord]


def make_rank(rank: int, times_s: tuple[float | None, ...]) -> RankRecord:
    return RankRecord(
        rank=rank,
        local_rank=rank,
        phases_s={"imports": 3.25, "environment_creation": 10.0},
        settings={"seed": 42 + rank, "tf32": False, "lr": 0.001, "backend": None, "versions.torch": "2.11.0"},
        samples={"iteration_time_s": times_s, "reward_mean": (None,) * len(times_s)},
        parameters_sha256="cd" * 32,
        peak_memory_gb=1.5,
    )


def stored_round(round_index: int = 0, outcome: Outcome = "completed", *, case: Case, **changes: Any) -> RunRecord:
    """A two-rank round of three iterations; rank 1 is the slower one, except in the last iteration."""
    slow = (2.0 + round_index, 0.1 + 0.2 + round_index, 0.2)
    record = RunRecord(
        case=case,
        round=round_index,
        outcome=outcome,
        reason=None if outcome == "completed" else f"RuntimeError: rank 1 {outcome}",
        exit_code=0 if outcome == "completed" else 1,
        started_utc="2026-11-21T10:00:00Z",
        wall_time_s=61.5,
        environment=ENVIRONMENT,
        argv=("torchrun", "-m", "tasks.worker"),
        ranks=(make_rank(0, (1.0, 0.1, math.pi)), make_rank(1, slow)),
    )
    return replace(record, **changes)


def plain_rank(rank: int, **samples: tuple[float | None, ...]) -> RankRecord:
    """A rank with the given columns and nothing else."""
    return RankRecord(rank=rank, local_rank=rank, phases_s={}, settings={}, samples=samples)


def plain_round(case: Case, *ranks: RankRecord, **changes: Any) -> RunRecord:
    """A completed first round of these ranks, with the given fields changed."""
    record = RunRecord(
        case=case,
        round=0,
        outcome="completed",
        reason=None,
        exit_code=0,
        started_utc=None,
        wall_time_s=None,
        environment=ENVIRONMENT,
        ranks=ranks,
    )
    return replace(record, **changes)


def written(result: CaseResult, path: Path) -> dict[str, Any]:
    store.write_case(result, path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
