"""The launcher ``ray``: rounds on the nodes of a Ray cluster that a person has started.

A driver of Ray, a process of its own (``suite.launch.nodes.ray_driver``), answers questions and supervises a round.
"""

import functools
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import IO, Any, Final

from pydantic import TypeAdapter

from suite import errors
from suite.errors import Interrupted, LabscaleError, SchedulerError, WorkerEnvironmentError
from suite.external.program import lines_into, run_program, send_line
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.contract import TO_ITS_END, Asked, LauncherEntry, NoSettings, RunControl, Runtime, Say
from suite.launch.native import on_this_machine
from suite.launch.nodes.facts import arguments_for, as_one
from suite.launch.processes import KILL_PATIENCE_S, POLL_S
from suite.matrix.resources import Resources
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch

PROGRAM: Final = (sys.executable, "-m", "suite.launch.nodes.ray_driver")
TIMEOUT_S: Final = 420.0  # of all questions to the nodes
_SLACK_S: Final = 15.0  # for the nodes to say that they have ended, and for Ray to let the driver go


def run(launch: Launch, control: RunControl = TO_ITS_END, *, say: Say) -> LaunchResult:
    """Run ``launch`` on the cluster; see ``suite.launch.contract``.

    Raises SchedulerError if Ray does not reserve the nodes or start the round there.
    """
    started_utc, started_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with tempfile.TemporaryFile() as log:
        driver = _Driver(launch, log)
        try:
            while (message := driver.message()) is not None:
                if control.is_stopped:
                    driver.stop()
                if message.get("event") == "says":
                    say(message["text"])
                elif message.get("event") == "progress" and control.on_progress:
                    control.on_progress(message["iterations"])
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


def resources() -> Resources:
    """How many nodes there are, and what Ray may give away on the smallest. If some have GPUs, others do not count.

    Raises:
        WorkerEnvironmentError: Ray is not installed here.
        SchedulerError: there is no cluster, or it has another version of Ray.
    """
    nodes = _answer("nodes")["nodes"]
    return Resources(
        nnodes=len(nodes),
        gpus_per_node=min(int(node["gpus"]) for node in nodes),
        cpus_per_node=min(int(node["cpus"]) for node in nodes),
    )


def _ask_nodes(arguments: Sequence[str]) -> dict[str, str]:
    """What labscale's own Python prints on each node, all at once. Raises SchedulerError for one that cannot run it."""
    printed = {}
    for address, run in _answer("ask", *arguments)["answers"].items():
        if run["end"] != "ended" or run["exit_code"] != 0:
            raise SchedulerError(
                f"{address} does not run {' '.join(arguments[:2])} ({run['end']}, exit code {run['exit_code']}): "
                f"{last_words(run['stderr'])}\n"
                "The checkout and its Python must be in the same folders on every node of Ray."
            )
        printed[address] = run["stdout"]
    return printed


def _answer(*words: str) -> Mapping[str, Any]:
    """The driver's answer to a question."""
    if importlib.util.find_spec("ray") is None:
        raise WorkerEnvironmentError(
            f"{sys.executable} has no Ray, which --launcher ray needs. `nox -s bench -- --launcher ray` installs it; "
            "containers/pins/ray.txt has the version."
        )
    run = run_program((*PROGRAM, *words), environ=os.environ, timeout_s=TIMEOUT_S)
    messages = [json.loads(line) for line in run.stdout.splitlines()]
    if not messages:
        raise SchedulerError(
            f"Ray does not answer ({run.end}, exit code {run.exit_code}): {last_words(run.stderr)}\n`ray status` on "
            "this machine must show the cluster."
        )
    if messages[-1]["event"] == "error":
        raise error_of(messages[-1])
    answer: dict[str, Any] = messages[-1]
    return answer


def _provision(_settings: NoSettings, asked: Asked) -> Runtime:
    """Use the worker in the same folder on every node of Ray; refuse nodes that differ, by name."""
    inner = on_this_machine(asked)
    answers = _ask_nodes(arguments_for(asked.request))
    facts = as_one(answers, say=asked.say, differing_is_fine=asked.options.place.ignore_env_check)
    return replace(
        inner,
        launch=functools.partial(run, say=asked.say),
        machine=facts.environment,
        check=lambda: facts.report,
    )


RAY: Final = LauncherEntry(
    name="ray",
    resources=lambda _settings, _machine: resources(),
    provision=_provision,
    settings=NoSettings,
)
