"""What every launcher does around a run: prepare its directory, watch its ranks' files, decide when to end it."""

import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from suite.errors import StoreError
from suite.files.input_file import open_input
from suite.launch.contract import RunControl
from suite.matrix.plan import EMPTY_CACHE
from suite.records.rank_file import rank_path, rank_paths
from suite.records.telemetry_file import TELEMETRY_FILE
from suite.schema.rank_protocol import CONFIGURATION_FILE, EndedBy, LaunchResult, text_of
from suite.schema.record import Case, Launch

POLL_S: Final = 0.2
PEER_PATIENCE_S: Final = 5.0  # for the other nodes to end by themselves when one has, and to say why
LOG: Final = "logs/torchrun.log"  # below the run directory: stdout and stderr of torchrun itself
NODE_LOG: Final = "logs/node-{}/torchrun.log"  # the same of one of several nodes
_ITERATION_EVENT: Final = re.compile(rb'"event":\s*"iteration"')


def prepare(run_dir: Path, case: Case) -> None:
    """Remove what an interrupted attempt left in the directory; write ``configuration.json`` and an empty log.

    Raises StoreError if the directory cannot be written, or contains a finished run.
    """
    if (run_dir / "record.json").exists():
        message = f"{run_dir} contains a finished run, which is never overwritten. Choose another results folder."
        raise StoreError(message)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        for path in rank_paths(run_dir).values():
            path.unlink()
        for path in run_dir.glob(f"{Path(TELEMETRY_FILE).stem}*.jsonl"):  # one for each node
            path.unlink()
        for name in ("logs", "bundle", EMPTY_CACHE):
            if (run_dir / name).exists():
                shutil.rmtree(run_dir / name)
        (run_dir / "logs").mkdir()
        (run_dir / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
        (run_dir / LOG).touch()
    except OSError as error:
        message = (
            f"cannot write to {run_dir}: {error.strerror}. Make room or give access, then run the same command again:"
            " what has finished is kept."
        )
        raise StoreError(message) from error


class Watch:
    """What a run has written since it was started, and when it last wrote something."""

    def __init__(self, launch: Launch, control: RunControl) -> None:
        self._case = launch.case
        self._paths = [rank_path(Path(launch.run_dir), rank) for rank in range(launch.case.num_processes)]
        self._control = control
        self._started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        self._begun_s = self._started_s = self._grown_s = self._looked_s = time.monotonic()
        self._sizes: list[int] = []
        self._read_bytes = 0  # of rank 0's file
        self._iterations = 0

    def look(self, *, stands_still: bool = False) -> EndedBy | None:
        """Report progress; say whether the run has to be ended. ``stands_still``: others have its nodes."""
        now_s = time.monotonic()
        if stands_still or (self._control.waits is not None and self._control.waits()):
            self._started_s += now_s - self._looked_s
            self._grown_s += now_s - self._looked_s
        self._looked_s = now_s
        sizes = [path.stat().st_size if path.exists() else 0 for path in self._paths]
        if sizes != self._sizes:
            self._sizes, self._grown_s = sizes, now_s
            self._count_iterations()
        if self._control.is_stopped:
            return "interrupted"
        if now_s - self._started_s > self._case.timeout_s:
            return "timeout"
        if now_s - self._grown_s > self._case.hang_timeout_s:
            return "hung"
        return None

    def wait(self, exit_code: Callable[[float], int | None]) -> EndedBy | None:
        """Wait until the run ends by itself (None) or there is a reason to end it.

        ``exit_code`` waits for at most the given seconds and returns None while the run goes on.
        """
        while exit_code(POLL_S) is None:
            if ended_by := self.look():
                return ended_by
        return None

    def result(self, exit_code: int, ended_by: EndedBy | None) -> LaunchResult:
        """The result of the run, which has ended by now."""
        self.look()
        return LaunchResult(
            exit_code=exit_code,
            ended_by=ended_by,
            started_utc=self._started_utc,
            wall_time_s=time.monotonic() - self._begun_s,
        )

    def _count_iterations(self) -> None:
        if self._control.on_progress is None or not self._paths[0].is_file():
            return
        with open_input(self._paths[0]) as stream:
            stream.seek(self._read_bytes)
            whole_lines = stream.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole_lines)
        if new := len(_ITERATION_EVENT.findall(whole_lines)):
            self._iterations += new
            self._control.on_progress(self._iterations)
