"""What is timed: each measurement makes what it needs in a new folder and returns one time."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reports.site import build as report
from reports.site import publish as publishing
from suite.files.paths import ROOT
from suite.install.worker import provision_worker
from suite.launch.native.run import run as run_native
from suite.launch.telemetry_sampler import Sampler
from tests.fixtures.results.large_results import write_large_results, write_matrix
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of

SAMPLES: Final = 200


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """``run`` takes an empty folder and returns seconds."""

    name: str
    what: str
    run: Callable[[Path], float]


def seconds_of(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def run_suite(*arguments: str) -> None:
    """Run labscale's command line in a process of its own, to a good end."""
    command = [sys.executable, "-m", "suite", *arguments]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, check=True)


def command_line(_folder: Path) -> float:
    return seconds_of(lambda: run_suite("plan", "--help"))


def plan_of_1024_gpus(folder: Path) -> float:
    matrix = write_matrix(folder, most_gpus=1024)
    return seconds_of(lambda: run_suite("plan", "--matrix", str(matrix), "--device", "cuda"))


def report_of_64_gpus(folder: Path) -> float:
    results = write_large_results(folder, most_gpus=64, whole_store=False)
    return seconds_of(lambda: report.build(results, folder / "site", version="generated"))


def report_of_1024_gpus(folder: Path) -> float:
    results = write_large_results(folder, most_gpus=1024, whole_store=True)
    return seconds_of(lambda: report.build(results, folder / "site", version="generated"))


def site(folder: Path) -> float:
    return seconds_of(lambda: publishing.publish(ROOT / "reports" / "results", folder / "site"))


def sample(folder: Path) -> float:
    """Processor time of one sample, the mean of many: the sampler takes it from the ranks."""
    sampler = Sampler(folder, num_gpus=0, num_ranks=1)
    start_s = time.process_time()
    for _ in range(SAMPLES):
        sampler.sample()
    return (time.process_time() - start_s) / SAMPLES


def short_round(folder: Path) -> float:
    """Nearly all of it is the start-up of torchrun and of the rank."""
    worker = provision_worker(
        project_root=ROOT, stack="kitless", worker_python=None, assets="offline", on_message=lambda _: None
    )
    (case,) = cases_of(matrix_of(cartpole("rsl_rl", iterations=2)), folder)
    result = run_native(launch_of(worker, case, folder / "r0"))
    if result.exit_code != 0:
        raise RuntimeError(f"the round failed; see {folder / 'r0' / 'logs'}")
    return result.wall_time_s


MEASUREMENTS: Final = (
    Measurement(name="command_line_s", what="start-up of the command line", run=command_line),
    Measurement(name="plan_1024_gpus_s", what="plan of 1,024 GPUs, with start-up", run=plan_of_1024_gpus),
    Measurement(name="sample_cpu_s", what="one sample of telemetry without GPUs, processor time", run=sample),
    Measurement(name="rank_start_up_s", what="a round of two iterations, one rank, CPU", run=short_round),
    Measurement(name="report_64_gpus_s", what="report of 64 generated GPUs", run=report_of_64_gpus),
    Measurement(name="report_1024_gpus_s", what="report of 1,024 generated GPUs", run=report_of_1024_gpus),
    Measurement(name="site_s", what="site of every version in git", run=site),
)
