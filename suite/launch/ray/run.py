"""Run one round on a Ray cluster: a driver of Ray, a process of its own, supervises the nodes."""

import json
import queue
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from threading import Event
from typing import IO, Any, Final

from pydantic import TypeAdapter

from suite import errors
from suite.errors import Interrupted, LabscaleError
from suite.external.line_pipes import lines_into, send_line
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.nodes.supervisor import Say
from suite.launch.processes import KILL_PATIENCE_S, POLL_S
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch

PROGRAM: Final = (sys.executable, "-m", "suite.launch.ray.driver")
_SLACK_S: Final = 15.0  # for the nodes to say that they have ended, and for Ray to let the driver go


def run(
    launch: Launch,
    *,
    say: Say,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.Launcher``.

    Raises:
        StoreError: the run directory cannot be written, or contains a finished round.
        SchedulerError: Ray does not reserve the nodes or start the round there.
    """
    started_utc, started_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with tempfile.TemporaryFile() as log:
        driver = _Driver(launch, log)
        try:
            while (message := driver.message()) is not None:
                if stop is not None and stop.is_set():
                    driver.stop()
                if message.get("event") == "says":
                    say(message["text"])
                elif message.get("event") == "progress" and on_progress:
                    on_progress(message["iterations"])
                elif message.get("event") == "result":
                    return TypeAdapter(LaunchResult).validate_python(message["result"])
                elif message.get("event") == "error":
                    raise error_of(message)
        finally:  # Ctrl-C too
            exit_code = driver.end(launch.grace_s)
        wall_time_s = time.monotonic() - started_s
        ended = LaunchResult(exit_code=1, ended_by="interrupted", started_utc=started_utc, wall_time_s=wall_time_s)
        if exit_code == Interrupted.exit_code:  # before the round had begun
            return ended
        time.sleep(launch.grace_s)  # Ray ends what the driver had started, and nobody is left to say when that is done
        why = f"Ray's driver {how_it_ended(exit_code, _said(log))}"
    say(why)
    return replace(ended, ended_by="lost", why=why)


def error_of(message: Mapping[str, Any]) -> LabscaleError:
    """The error that the driver met, with its exit code."""
    kind = getattr(errors, message["kind"])
    error: LabscaleError = kind(message["text"])
    return error


def how_it_ended(exit_code: int, said: str) -> str:
    """How a driver ended that gave no answer."""
    if exit_code < 0:
        return f"was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    return f"ended with exit code {exit_code}: {said}"


def _said(log: IO[bytes]) -> str:
    log.seek(0)
    return last_words(log.read().decode(errors="replace"))


class _Driver:
    """The process, and the messages that it writes."""

    def __init__(self, launch: Launch, log: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            (*PROGRAM, "round"),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C in the terminal reaches labscale alone
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = lines_into(self._lines, self._process)
        send_line(self._process, json.dumps(asdict(launch)) + "\n")

    def message(self) -> Mapping[str, Any] | None:
        """The next message; empty if there is none yet, None if the driver has ended."""
        try:
            line = self._lines.get(timeout=POLL_S)
        except queue.Empty:
            return {}
        return None if line is None else dict(json.loads(line))

    def stop(self) -> None:
        """Have the driver end the round."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def end(self, grace_s: float) -> int:
        """Have the driver end what still runs, and wait for it; return its exit code."""
        try:
            self.stop()
            return self._process.wait(grace_s + KILL_PATIENCE_S + _SLACK_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()
