"""Run one node's part of a round: ``python -m suite.launch.nodes.agent``, which ssh or Ray starts on the node.

It reads and writes JSON, one message a line. It ends every process of its part when it is told to, when its stdin
closes, at SIGTERM, and after ``SILENCE_S`` without a message: ssh and Ray would leave processes running.
"""

import ipaddress
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from suite.errors import LabscaleError
from suite.launch.nodes.node import free_port, interface_of
from suite.launch.processes import RunProcesses
from suite.launch.telemetry_sampler import beside

BEAT_S: Final = 2.0  # between the messages with which each side says that it is there
SILENCE_S: Final = 20.0  # without a message: the other side is gone
POLL_S: Final = 0.2
VARIABLE: Final = "SSH_CONNECTION"  # sshd's: client's address and port, this host's address and port

_Line = dict[str, Any] | None  # None: the other side has closed


def main() -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    lines: queue.SimpleQueue[_Line] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    try:
        request = lines.get(timeout=SILENCE_S)
        if request is None:
            return 1
        if reason := refusal(request):
            _say(event="refused", reason=reason)
            return 1
        _say(event="ready", **_place(request["address"] or os.environ[VARIABLE].split()[2]))
        start = _await_start(lines)
        if start is None:
            return 1
        sampler_log, visible_gpus = Path(request["sampler_log"]), request["env"].get("CUDA_VISIBLE_DEVICES")
        with beside(request["sampler"], sampler_log, visible_gpus=visible_gpus):
            exit_code, by_itself = _run(request, start, lines)
        _say(event="ended", exit_code=exit_code, by_itself=by_itself)
    except (BrokenPipeError, queue.Empty, KeyboardInterrupt):
        return 1
    except LabscaleError as error:
        _say(event="refused", reason=str(error))
        return 1
    return 0


def refusal(request: Mapping[str, Any]) -> str | None:
    """Why this host cannot take part; None if it can."""
    token = Path(request["token_path"])
    try:
        text = token.read_text(encoding="utf-8")
    except OSError as error:
        return f"does not see the results folder: {token}: {error.strerror}"
    if text != request["token"]:
        return f"has another folder under {token.parent}"
    if not Path(request["argv"][0]).exists():
        return f"has no {request['argv'][0]}, the worker's Python"
    return None


def _place(address: str) -> dict[str, Any]:
    """The address under which this host was reached, its interface, and a free port."""
    parsed = ipaddress.ip_address(address)
    return {
        "address": None if parsed.is_loopback else address,
        "interface": None if parsed.is_loopback else interface_of(address),
        "port": free_port(),
    }


def _await_start(lines: "queue.SimpleQueue[_Line]") -> _Line:
    while (line := lines.get(timeout=SILENCE_S)) is not None:
        if line["command"] == "start":
            return line
        if line["command"] == "end":
            return None
        _say(event="alive")
    return None


def _run(request: Mapping[str, Any], start: Mapping[str, Any], lines: "queue.SimpleQueue[_Line]") -> tuple[int, bool]:
    """Run torchrun to its end. Return its exit code (negative: a signal), and whether nobody asked it to end."""
    with Path(request["log"]).open("wb") as log:
        processes = RunProcesses(request["argv"], {**request["env"], **start["env"]}, log)
    try:
        heard_s = told_s = time.monotonic()
        while not (by_itself := processes.exit_code(POLL_S) is not None):
            now_s = time.monotonic()
            if now_s - told_s > BEAT_S:
                told_s = now_s
                _say(event="alive")
            if not lines.empty():
                line, heard_s = lines.get(), now_s
                if line is None or line["command"] == "end":
                    break
                if line["command"] == "dump_stacks":
                    processes.dump_stacks()
            if now_s - heard_s > SILENCE_S:
                break
    finally:
        processes.end(request["grace_s"])
    return processes.root.wait(), by_itself


def _read(lines: "queue.SimpleQueue[_Line]") -> None:
    for line in sys.stdin:
        lines.put(json.loads(line))
    lines.put(None)


def _say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def _interrupt(signum: int, _frame: object) -> None:
    raise KeyboardInterrupt(f"signal {signum}")


if __name__ == "__main__":
    sys.exit(main())
