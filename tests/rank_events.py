"""Run directories as ranks and torchrun leave them, event by event: what tests of collecting share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.launch import LaunchResult
from suite.records.collect import collect
from suite.schema.launch_result import EndedBy
from suite.schema.record import Case, Environment, RunRecord

Events = list[dict[str, Any]]


class RankFiles:
    """A run directory that a test fills, and collects."""

    def __init__(self, run_dir: Path, case: Case, environment: Environment) -> None:
        self.run_dir = run_dir
        self.case = case
        self.environment = environment

    def rank(self, rank: int, events: Events, *, torn: str = "") -> None:
        text = "".join(json.dumps(event) + "\n" for event in events)
        (self.run_dir / f"rank-{rank}.jsonl").write_text(text + torn)

    def torchrun_log(self, *exits: tuple[int, int], before: str = "") -> None:
        """Write the report of torch 2.11 for ``(rank, exit code)``; the last is what torchrun calls the root cause."""
        reports = [
            f"[{number}]:\n  time      : 2026-11-21_02:45:59\n  host      : localhost\n"
            f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {6470 + rank})\n"
            "  error_file: <N/A>\n"
            for number, (rank, code) in enumerate(exits)
        ]
        self.log(
            "torchrun.log", f"{before}\ntasks.worker FAILED\n{'-' * 20}\nFailures:\n{''.join(reports)}{'=' * 20}\n"
        )

    def log(self, name: str, text: str) -> None:
        path = self.run_dir / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def collect(
        self, exit_code: int = 0, ended_by: EndedBy | None = None, why: str | None = None, nodes: tuple[str, ...] = ()
    ) -> RunRecord:
        result = LaunchResult(
            exit_code=exit_code,
            ended_by=ended_by,
            started_utc="2026-11-21T02:45:50+00:00",
            wall_time_s=9.5,
            why=why,
            nodes=nodes,
        )
        return collect(self.run_dir, self.case, 1, result, self.environment, argv=("python", "-m", "x"))


@pytest.fixture
def rank_files(tmp_path: Path, make_case: Callable[..., Case], environment: Environment) -> RankFiles:
    return RankFiles(tmp_path, make_case(), environment)


def head(rank: int) -> Events:
    return [
        {"event": "start", "rank": rank, "local_rank": rank, "world_size": 2, "pid": 6470 + rank, "time_unix_s": 1.0},
        {"event": "phase", "name": "imports", "duration_s": 2.5},
        {"event": "settings", "settings": {"seed": 42 + rank, "tf32": True, "versions.torch": "2.11.0"}},
    ]


def iterations(count: int, **columns: float | None) -> Events:
    samples = {"iteration_time_s": 0.5, **columns}
    return [{"event": "iteration", "iteration": number, "samples": samples} for number in range(count)]


def end(digest: str | None = "ab" * 32) -> Events:
    return [{"event": "end", "parameters_sha256": digest, "peak_memory_gb": 1.5, "kernels_compiled": 7}]


def error(message: str, *, kind: str = "RuntimeError", time_unix_s: float = 10.0, oom: bool = False) -> Events:
    fields = {"type": kind, "message": message, "traceback": "…", "out_of_memory": oom, "time_unix_s": time_unix_s}
    return [{"event": "error", **fields}]


def whole(rank: int) -> Events:
    return head(rank) + iterations(3) + end()
