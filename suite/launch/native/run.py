"""Run one round on this machine: torchrun as a child process, watched, and ended with everything it started."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from suite.launch.processes import RunProcesses
from suite.launch.telemetry_sampler import sampling
from suite.launch.watch import LOG, Watch, prepare, wait
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch


def run(
    launch: Launch,
    *,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
    waits: Callable[[], bool] | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.TurnsLauncher``.

    Raises:
        StoreError: the run directory cannot be written, or contains a finished round.
        WorkerEnvironmentError: the program cannot be executed.
        LabscaleError: a process of the run cannot be ended.

    """
    run_dir = Path(launch.run_dir)
    prepare(run_dir, launch.case)
    with sampling(run_dir, launch.case, visible_gpus=launch.env.get("CUDA_VISIBLE_DEVICES")):
        return _run(launch, Watch(launch.case, run_dir, on_progress), stop, waits)


def _run(launch: Launch, watch: Watch, stop: Event | None, waits: Callable[[], bool] | None) -> LaunchResult:
    with (Path(launch.run_dir) / LOG).open("wb") as log:
        started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        started_s = time.monotonic()
        processes = RunProcesses.start(launch.argv, launch.env, log, cpus=launch.cpus)
    try:
        ended_by = wait(processes.exit_code, watch, stop, waits)
        if ended_by in ("timeout", "hung"):
            processes.dump_stacks()
    finally:  # Ctrl-C too, and when it ended by itself, for what it left
        processes.end(launch.grace_s)
    watch.look()
    return LaunchResult(
        exit_code=processes.root.wait(),
        ended_by=ended_by,
        started_utc=started_utc,
        wall_time_s=time.monotonic() - started_s,
        oom_kills=processes.oom_kills(),
    )
