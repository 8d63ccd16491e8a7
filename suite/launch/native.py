"""Run one round on this machine: torchrun as a child process, watched, and ended with everything it started."""

import dataclasses
import json
import re
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from suite.errors import StoreError
from suite.launch.processes import RunProcesses
from suite.launch.result import EndedBy, LaunchResult
from suite.rank_file import rank_path, rank_paths
from suite.schema import Case, Launch

POLL_S: Final = 0.2
_ITERATION_EVENT: Final = re.compile(rb'"event":\s*"iteration"')


def run(
    launch: Launch, *, on_progress: Callable[[int], None] | None = None, stop: threading.Event | None = None
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.Launcher``.

    Raises:
        StoreError: the run directory cannot be written, or holds a finished round.
        WorkerEnvironmentError: the program cannot be executed.
        LabscaleError: a process of the run cannot be ended.

    """
    run_dir = Path(launch.run_dir)
    with _prepare(run_dir, launch.case) as log:
        started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        started_s = time.monotonic()
        processes = RunProcesses.start(launch.argv, launch.env, log)
    watch = _Watch(launch.case, run_dir, on_progress)
    try:
        ended_by = _wait(processes, watch, stop)
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
    )


class _Watch:
    """What a run has written, and when it last wrote."""

    def __init__(self, case: Case, run_dir: Path, on_progress: Callable[[int], None] | None) -> None:
        self._case = case
        self._paths = [rank_path(run_dir, rank) for rank in range(case.world_size)]
        self._on_progress = on_progress
        self._started_s = self._grown_s = time.monotonic()
        self._sizes: list[int] = []
        self._read_bytes = 0  # of rank 0's file
        self._iterations = 0

    def look(self) -> EndedBy | None:
        """Report progress; say whether the run has to be ended."""
        now_s = time.monotonic()
        sizes = [path.stat().st_size if path.exists() else 0 for path in self._paths]
        if sizes != self._sizes:
            self._sizes, self._grown_s = sizes, now_s
            self._count_iterations()
        if now_s - self._started_s > self._case.timeout_s:
            return "timeout"
        if now_s - self._grown_s > self._case.hang_timeout_s:
            return "hung"
        return None

    def _count_iterations(self) -> None:
        if self._on_progress is None or not self._paths[0].exists():
            return
        with self._paths[0].open("rb") as stream:
            stream.seek(self._read_bytes)
            whole_lines = stream.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole_lines)
        if new := len(_ITERATION_EVENT.findall(whole_lines)):
            self._iterations += new
            self._on_progress(self._iterations)


def _wait(processes: RunProcesses, watch: _Watch, stop: threading.Event | None) -> EndedBy | None:
    """Wait until the run ends by itself (None) or there is a reason to end it."""
    while processes.exit_code(wait_s=POLL_S) is None:
        if stop is not None and stop.is_set():
            return "interrupted"
        if ended_by := watch.look():
            return ended_by
    return None


def _prepare(run_dir: Path, case: Case) -> IO[bytes]:
    """Write ``case.json`` into a directory without a trace of an earlier, interrupted attempt; open torchrun's log."""
    if (run_dir / "record.json").exists():
        message = f"{run_dir} holds a finished round, which is never overwritten. Choose another results folder."
        raise StoreError(message)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        for path in rank_paths(run_dir).values():
            path.unlink()
        for name in ("logs", "bundle"):
            if (run_dir / name).exists():
                shutil.rmtree(run_dir / name)
        (run_dir / "logs").mkdir()
        (run_dir / "case.json").write_text(json.dumps(dataclasses.asdict(case), indent=1) + "\n", encoding="utf-8")
        return (run_dir / "logs" / "torchrun.log").open("wb")
    except OSError as error:
        message = (
            f"cannot write to {run_dir}: {error.strerror}. Make room or give access, then run the same command again:"
            " what has finished is kept."
        )
        raise StoreError(message) from error
