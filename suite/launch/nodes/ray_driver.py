"""The driver of Ray, a process: ``python -m suite.launch.nodes.ray_driver nodes``, ``ask WORD…`` or ``round``.

It writes JSON, one message a line. A round reads its Launch from the first line of stdin, and ends early when stdin
closes. When this process is killed, Ray ends its processes on all nodes, and with them everything they started.
"""

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any, Final

from pydantic import TypeAdapter

from suite.errors import Interrupted, LabscaleError, SchedulerError
from suite.external.ray_cluster import RayNode, Reservation, alive_nodes, connected, run_on
from suite.files.paths import ROOT
from suite.launch.contract import RunControl
from suite.launch.nodes.supervisor import Part, supervise
from suite.schema.rank_protocol import travelling
from suite.schema.record import Launch

ASK_TIMEOUT_S: Final = 300.0
RESERVE_TIMEOUT_S: Final = 60.0


class _Messages:
    """The stdout of this process, kept from what Ray prints."""

    def __init__(self) -> None:
        self._stream: IO[str] = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(self, event: str, **message: Any) -> None:
        try:
            print(json.dumps({"event": event, **message}), file=self._stream, flush=True)
        except BrokenPipeError:
            return  # the closed stdin says so too


def main(argv: Sequence[str]) -> int:
    messages = _Messages()
    try:
        if argv[0] == "round":
            _round(messages)
        else:
            with connected(ROOT):
                nodes = _usable(alive_nodes())
                if argv[0] == "nodes":
                    messages.write("nodes", nodes=[asdict(node) for node in nodes])
                else:
                    _ask(messages, nodes, argv[1:])
    except LabscaleError as error:
        messages.write("error", kind=type(error).__name__, text=str(error))
        return error.exit_code
    return 0


def _usable(nodes: Sequence[RayNode]) -> Sequence[RayNode]:
    """The nodes with GPUs to give away, or with CPUs if none has a GPU."""
    usable = [node for node in nodes if node.gpus] or [node for node in nodes if node.cpus]
    if not usable:
        raise SchedulerError(
            f"No node of the Ray cluster has a GPU or CPU to give away (nodes: {len(nodes)}). Start one by "
            "`ray start`, without --num-cpus=0."
        )
    return usable


def _ask(messages: _Messages, nodes: Sequence[RayNode], arguments: Sequence[str]) -> None:
    """Run labscale's own Python with these arguments on the nodes."""
    settings = [f"{name}={value}" for name, value in travelling(os.environ).items()]
    runs = run_on(nodes, ("env", *settings, sys.executable, *arguments), working_dir=ROOT, timeout_s=ASK_TIMEOUT_S)
    answers = {node.address: asdict(run) for node, run in zip(nodes, runs, strict=True)}
    messages.write("answers", answers=answers)


def _round(messages: _Messages) -> None:
    launch = TypeAdapter(Launch).validate_json(sys.stdin.readline())
    stop = threading.Event()
    began = threading.Event()
    threading.Thread(target=_set_at_end, args=(sys.stdin, stop, began), daemon=True).start()
    case = launch.case
    with connected(ROOT):
        gpus = case.gpus_per_node if case.device == "cuda" else 0
        reserved = Reservation(case.nnodes, gpus=gpus, cpus=case.processes_per_node, timeout_s=RESERVE_TIMEOUT_S)
        argv = (sys.executable, "-m", "suite.launch.nodes.agent")
        began.set()

        def connect(rank: int) -> Part:
            program = reserved.start(rank, argv, working_dir=ROOT)
            host = program.address
            advice = (
                f"`ray status` must show {host}, and the checkout and its Python must be in the same folders there."
            )
            return Part(host, program, advice=advice, address=host)

        result = supervise(
            launch,
            connect,
            RunControl(on_progress=lambda iterations: messages.write("progress", iterations=iterations), stop=stop),
            say=lambda text: messages.write("says", text=text),
        )
    messages.write("result", result=asdict(result))


def _set_at_end(stream: IO[str], stop: threading.Event, began: threading.Event) -> None:
    """Set ``stop`` when the stream ends. Before the round has begun, there is nothing to end but this process."""
    for _ in stream:
        continue
    stop.set()
    if not began.is_set():
        os._exit(Interrupted.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
