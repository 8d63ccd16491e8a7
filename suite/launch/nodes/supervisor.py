"""Run one round on several nodes: an agent on each of them runs torchrun, and this supervises all of them.

The results folder, the checkout and its Python must be in the same folders on every node. When one part ends badly, its
node falls silent, or the supervisor itself ends, every part ends: ``suite.launch.nodes.agent`` leaves no process.
"""

import json
import signal
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from suite.errors import SchedulerError
from suite.files.wording import last_words
from suite.launch.contract import RunControl, Say
from suite.launch.nodes.agent import BEAT_S, SILENCE_S
from suite.launch.nodes.node import address_towards, interface_of, node_variables
from suite.launch.processes import KILL_PATIENCE_S, STACK_DUMP_S
from suite.launch.telemetry_sampler import sampler_argv
from suite.launch.watch import NODE_LOG, PEER_PATIENCE_S, POLL_S, Watch, prepare
from suite.records.telemetry_file import sampler_log
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Launch

TOKEN: Final = "node-token"  # noqa: S105  below the run directory: every node has to see it
READY_TIMEOUT_S: Final = 60.0  # for the first answer of a node: Python may come from a slow file system
END_POLL_S: Final = 0.1
END_SLACK_S: Final = 5.0  # for the network and a busy node
CLOSE_PATIENCE_S: Final = 5.0  # for an agent that has said that it ends
LAST_LINES: Final = 5  # of what a connection said before it ended


class Connection(Protocol):
    """The agent of a node, which ssh or Ray has started; ``suite.external.program.LineProgram`` is one."""

    def read(self) -> list[str | None]:
        """The lines since the last call, without waiting; None: the connection has ended."""

    def send(self, line: str) -> None:
        """Send a line; that the agent is gone is seen when it is read."""

    def errors(self) -> str:
        """Why the connection ended, if it knows."""

    def end(self, wait_s: float) -> object:
        """Close it, whatever its state, after waiting for the agent to end."""


class Part:
    """One node's part. ``exit_code``, torchrun's, is None at first; ``lost`` and ``refused`` say why it stays None.

    ``advice`` is what must be true for the node to answer. ``address`` is the one under which other nodes reach it;
    None if only sshd there knows it.
    """

    def __init__(self, host: str, connection: Connection, *, advice: str, address: str | None = None) -> None:
        self.host = host
        self.advice = advice
        self.address = address
        self.exit_code: int | None = None
        self.ready: Mapping[str, Any] | None = None  # its address, interface and a free port
        self.refused: str | None = None  # why it cannot take part
        self.lost: str | None = None
        self.by_itself = False  # whether it ended without being asked to
        self._connection = connection
        self._last_text = ""  # that was not a message of the agent
        self._heard_s = self._told_s = time.monotonic()

    def tell(self, **message: Any) -> None:
        """Send a message to the agent; ``hear`` notices an agent that is gone."""
        self._connection.send(json.dumps(message) + "\n")

    def hear(self) -> None:
        """Read what the node has sent, and tell it that we are here."""
        for line in self._connection.read() if self.is_going_on else ():
            self._heard_s = time.monotonic()
            if line is not None:
                self._take(line)
            elif self.is_going_on:
                why = last_words(self._connection.errors() or self._last_text, LAST_LINES)
                self.lost = f"the connection to {self.host} ended: {why}"
        now_s = time.monotonic()
        if not self.is_going_on:
            return
        patience_s = READY_TIMEOUT_S if self.ready is None else SILENCE_S
        if now_s - self._heard_s > patience_s:
            self.lost = f"{self.host} has not answered for {patience_s:g} s"
        elif now_s - self._told_s > BEAT_S:
            self._told_s = now_s
            self.tell(command="alive")

    @property
    def is_going_on(self) -> bool:
        return self.exit_code is None and self.lost is None and self.refused is None

    def finish(self, grace_s: float) -> None:
        """Wait until the part has ended. A node that does not say so is given up; it ends its part by itself."""
        deadline_s = time.monotonic() + grace_s + KILL_PATIENCE_S + END_SLACK_S
        try:
            while self.is_going_on and time.monotonic() < deadline_s:
                self.hear()
                time.sleep(END_POLL_S)
        finally:
            has_ended = not self.is_going_on and self.lost is None
            self._connection.end(CLOSE_PATIENCE_S if has_ended else 0.0)

    def _take(self, line: str) -> None:
        """Note a message of the agent. Any other line is what a login script prints."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._last_text = line.strip()
        elif message.get("event") == "ready":
            self.ready = message
        elif message.get("event") == "ended":
            self.exit_code, self.by_itself = int(message["exit_code"]), bool(message["by_itself"])
        elif message.get("event") == "refused":
            self.refused = f"{self.host} {message['reason']}"


def supervise(launch: Launch, connect: Callable[[int], Part], control: RunControl, *, say: Say) -> LaunchResult:
    """Run ``launch`` on all nodes; ``connect`` starts the agent of a node, given its number. 0 is the head.

    Raises SchedulerError if a node does not answer before the round has begun, or cannot take part in it.
    """
    run_dir, case = Path(launch.run_dir), launch.case
    prepare(run_dir, case)
    parts: list[Part] = []
    try:
        for rank in range(case.nnodes):
            (run_dir / NODE_LOG.format(rank)).parent.mkdir()
            parts.append(connect(rank))
            parts[-1].tell(**_request(launch, rank, parts[-1].address))
        _begin(parts, say)
        watch = Watch(launch, control)
        ended_by = _wait(parts, watch)
        if ended_by in ("timeout", "hung"):
            for part in parts:
                part.tell(command="dump_stacks")
            time.sleep(2 * STACK_DUMP_S)
    finally:  # Ctrl-C too. A host that cannot say that it has ended its part ends it by itself.
        for part in parts:
            part.tell(command="end")
        for part in parts:
            part.finish(launch.grace_s)
    result = _judged(watch.result(0, ended_by), parts)
    if result.why:
        say(result.why)  # the record does not name hosts
    return replace(result, nodes=tuple(part.host for part in parts))


def addresses(ready: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str | None]]:
    """The address of each host for the others, and its interface. A host reached by its loopback is this machine.

    Raises:
        SchedulerError: two of them are this machine, there is nobody else to learn this one's address from, or one was
            reached by IPv6.
    """
    elsewhere = [str(answer["address"]) for answer in ready.values() if answer["address"]]
    reached = {}
    for host, answer in ready.items():
        address, interface = answer["address"], answer["interface"]
        if address is None:
            if len(elsewhere) != len(ready) - 1 or not elsewhere:
                raise SchedulerError(f"{', '.join(ready)} are one machine: a run of several nodes wants several.")
            address = address_towards(elsewhere[0])
            interface = interface_of(address)
        if ":" in address:
            raise SchedulerError(
                f"{host} was reached at {address}, which is IPv6: torchrun's rendezvous and gloo are given IPv4 "
                "addresses alone. Let its last hop be IPv4, as by AddressFamily in the jump host's ssh configuration."
            )
        reached[host] = (address, interface)
    return reached


def _request(launch: Launch, rank: int, address: str | None) -> dict[str, Any]:
    token_path = Path(launch.run_dir) / TOKEN
    if rank == 0:
        token_path.write_text(uuid.uuid4().hex, encoding="utf-8")
    node = rank if launch.case.nnodes > 1 else None
    return {
        "address": address,
        "sampler": sampler_argv(launch, node=node),
        "sampler_log": str(Path(launch.run_dir) / sampler_log(node)),
        "argv": launch.argv,
        "env": launch.env,
        "log": str(Path(launch.run_dir) / NODE_LOG.format(rank)),
        "token_path": str(token_path),
        "token": token_path.read_text(encoding="utf-8"),
        "grace_s": launch.grace_s,
    }


def _begin(parts: Sequence[Part], say: Say) -> None:
    """Start all parts together once every host is ready."""
    ready = _await_ready(parts)
    env: list[dict[str, str]] = [{}]
    if len(parts) > 1:
        reached = addresses(ready)
        places = [
            f"{'' if host == address else f'{host} is '}{address} on {interface or 'an interface that is not known'}"
            for host, (address, interface) in reached.items()
        ]
        (head, _), (peer, _), *_others = reached.values()
        say(f"{'; '.join(places)}. Head: {parts[0].host}")
        identity, port = uuid.uuid4().hex[:12], ready[parts[0].host]["port"]
        env = [
            node_variables(head=head, peer=peer, rank=rank, rendezvous_id=identity, port=port)
            for rank in range(len(parts))
        ]
    for part, variables in zip(parts, env, strict=True):
        part.tell(command="start", env=variables)


def _await_ready(parts: Sequence[Part]) -> dict[str, Mapping[str, Any]]:
    while True:
        for part in parts:
            part.hear()
            if part.refused:
                raise SchedulerError(
                    f"{part.refused}. Results, checkout and worker must be in the same folders on every host, on a "
                    "file system that they share; --out chooses another results folder."
                )
            if part.lost:
                raise SchedulerError(f"{part.host} cannot take part: {part.lost}. {part.advice}")
        ready = {part.host: part.ready for part in parts if part.ready is not None}
        if len(ready) == len(parts):
            return ready
        time.sleep(POLL_S)


def _wait(parts: Sequence[Part], watch: Watch) -> EndedBy | None:
    """Wait until all parts have ended well, one has ended badly, or there is a reason to end them."""
    first_failure_s: float | None = None
    while True:
        for part in parts:
            part.hear()
        if any(part.lost or part.refused for part in parts):
            return "lost"
        if all(part.exit_code is not None for part in parts):
            return None
        if any(part.exit_code for part in parts):
            first_failure_s = first_failure_s or time.monotonic()
            if time.monotonic() - first_failure_s > PEER_PATIENCE_S:
                return None
        if ended_by := watch.look():
            return ended_by
        time.sleep(POLL_S)


def _judged(result: LaunchResult, parts: Sequence[Part]) -> LaunchResult:
    """Combine the endings of the parts. What the launcher saw comes first: it explains what the ranks say."""
    if result.ended_by == "lost":
        return replace(result, exit_code=1, why="; ".join(why for part in parts if (why := part.lost or part.refused)))
    failed = [part for part in parts if part.exit_code]
    if not failed:
        return result
    # One that was killed explains the others.
    first = min(failed, key=lambda part: (not part.by_itself, (part.exit_code or 0) > 0))
    code = first.exit_code or 0
    if code < 0 and result.ended_by is None:
        why = f"torchrun on {first.host} was killed by signal {-code} ({signal.strsignal(-code)})"
        return replace(result, exit_code=code, why=why)
    return replace(result, exit_code=code)
