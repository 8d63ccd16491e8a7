"""Real training for tests, on the way that ``bench`` takes: matrix, plan, launch, native run, collection."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import psutil

from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.native.run import run as run_native
from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan, render_launch
from suite.records.collect import collect
from suite.records.rank_file import rank_path
from suite.schema.record import Case, Environment, Launch, RunRecord, Stack

MARK = "LABSCALE_TEST_MARK"  # every process of a run inherits it
NUM_CPUS = len(os.sched_getaffinity(0))


def matrix_of(*series: str, **settings: float | bool) -> str:
    """Text of a matrix file: one round of each case unless ``settings`` of the whole matrix say otherwise."""
    return _toml({"description": "for a test", "rounds": 1, "seed": 42, **settings}) + "".join(series)


def cartpole(
    *rl_libraries: str, name: str = "cartpole", topologies: Sequence[str] = ("1x1",), iterations: int = 3,
    **settings: str | float | Sequence[str],
) -> str:  # fmt: skip
    """Table of a series with 64 environments a rank. rl_games needs a ``minibatch_size`` that a rank collects."""
    series = {
        "name": name,
        "title": "Cartpole, 64 environments a rank",
        "scaling": "weak",
        "task": "Isaac-Cartpole-Direct",
        "rl_libraries": list(rl_libraries),
        "num_envs": 64,
        "topologies": list(topologies),
        "iterations": iterations,
    }
    return "\n[[series]]\n" + _toml({**series, **settings})


def _toml(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def cases_of(matrix: str, folder: Path) -> list[Case]:
    """Expand the text of a matrix file for the CPU; every case must be one that this machine can run."""
    path = folder / "matrix.toml"
    path.write_text(matrix, encoding="utf-8")
    catalog = load_catalog()
    cases = expand(load_matrix(path, catalog), catalog, device="cpu", assets="offline")
    planned = plan(
        cases,
        gpus_available=0,
        cpus_available=max(2, NUM_CPUS),  # two ranks on one core are slow, but right
        device="cpu",
        available_stacks=get_args(Stack),
        rounds=1,
        catalog=catalog,
    )
    assert [item.infeasible for item in planned] == [None] * len(cases)
    return cases


def launch_of(worker: Worker, case: Case, run_dir: Path) -> Launch:
    launch = render_launch(
        case,
        round_index=0,
        worker_python=worker.python,
        project_root=ROOT,
        run_dir=run_dir,
        asset_root=worker.asset_root,
        cache_dir=worker.cache_dir,
        cpus=NUM_CPUS,
        python_path=os.environ.get("PYTHONPATH"),
    )
    return replace(launch, env={**launch.env, MARK: str(run_dir)})


def warm_kernels(worker: Worker, folder: Path) -> None:
    """Train with one rank, once for a cache: ranks that start together would each compile the same for minutes.

    For one iteration, which has no marks within and must end well all the same.
    """
    worker.cache_dir.mkdir(exist_ok=True)
    done = worker.cache_dir / "warmed-by-the-tests"
    with (worker.cache_dir / "warming-by-the-tests").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        (case,) = cases_of(matrix_of(cartpole("rsl_rl")), folder)
        result = run_native(launch_of(worker, replace(case, iterations=1), folder / "r0"))
        assert result.exit_code == 0, (folder / "r0" / "logs" / "torchrun.log").read_text(encoding="utf-8")
        done.touch()


def train(launch: Launch, environment: Environment, *, on_progress: Callable[[int], None] | None = None) -> RunRecord:
    """Run a launch to its end, check that it left no process, and collect what it wrote."""
    result = run_native(launch, on_progress=on_progress)
    assert marked_processes(launch.run_dir) == []
    return collect(Path(launch.run_dir), launch.case, launch.round, result, environment, argv=launch.argv)


def marked_processes(mark: Path | str) -> list[psutil.Process]:
    """Every living process that inherited ``MARK`` with this value."""
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get(MARK) == str(mark) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def events(run_dir: Path, rank: int) -> list[dict[str, Any]]:
    """Whole lines of a rank's file; none when it has not started."""
    path = rank_path(run_dir, rank)
    if not path.exists():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


def pid_of(run_dir: Path, rank: int) -> int:
    return int(next(event["pid"] for event in events(run_dir, rank) if event["event"] == "start"))


def wait_until(condition: Callable[[], object], *, timeout_s: float, what: str) -> None:
    """Poll a condition; fail with ``what`` when it does not become true in time."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.1)
