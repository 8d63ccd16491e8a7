"""The launcher ``ray``: rounds on the nodes of a Ray cluster that a person has started.

A driver of Ray, a process of its own (``suite.launch.nodes.ray_driver``), answers questions and supervises a round.
"""

import functools
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter

from suite import errors
from suite.errors import Interrupted, LabscaleError, SchedulerError, WorkerEnvironmentError
from suite.external.program import LineProgram, ProgramRun, run_program
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.contract import TO_ITS_END, LauncherEntry, NoSettings, RunControl, Say
from suite.launch.nodes.facts import printed, provision_on_nodes
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
    driver = LineProgram((*PROGRAM, "round"), working_dir=ROOT)
    try:
        driver.send(json.dumps(asdict(launch)) + "\n")
        for message in _messages(driver, control):
            if message["event"] == "says":
                say(message["text"])
            elif message["event"] == "progress" and control.on_progress:
                control.on_progress(message["iterations"])
            elif message["event"] == "result":
                return TypeAdapter(LaunchResult).validate_python(message["result"])
            elif message["event"] == "error":
                raise error_of(message)
    finally:  # Ctrl-C too
        exit_code, messages = driver.end(launch.grace_s + KILL_PATIENCE_S + _SLACK_S)
    wall_time_s = time.monotonic() - started_s
    ended = LaunchResult(exit_code=1, ended_by="interrupted", started_utc=started_utc, wall_time_s=wall_time_s)
    if exit_code == Interrupted.exit_code:  # before the round had begun
        return ended
    time.sleep(launch.grace_s)  # Ray ends what the driver had started, and nobody is left to say when that is done
    why = f"Ray's driver ended with exit code {exit_code}: {last_words(messages)}"
    if exit_code < 0:
        why = f"Ray's driver was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    say(why)
    return replace(ended, ended_by="lost", why=why)


def _messages(driver: LineProgram, control: RunControl) -> Iterator[Mapping[str, Any]]:
    """Yield what the driver writes until it ends, which it does early when its input is closed."""
    while True:
        if control.is_stopped:
            driver.close_input()
        for line in driver.read(POLL_S):
            if line is None:
                return
            yield json.loads(line)


def error_of(message: Mapping[str, Any]) -> LabscaleError:
    """The error that the driver met, with its exit code."""
    kind: type[LabscaleError] = getattr(errors, message["kind"])
    return kind(message["text"])


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
    runs = {address: ProgramRun(**run) for address, run in _answer("ask", *arguments)["answers"].items()}
    return printed(runs, arguments, lambda _: "The checkout and its Python must be in the same folders on every node.")


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


RAY: Final = LauncherEntry(
    name="ray",
    resources=lambda _settings, _machine: resources(),
    provision=lambda _, asked: provision_on_nodes(asked, _ask_nodes, functools.partial(run, say=asked.say)),
    settings=NoSettings,
    elsewhere=True,
)
