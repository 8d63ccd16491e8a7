"""Run one round on several nodes: an agent on each of them runs torchrun, and this supervises all of them.

The results folder, the checkout and its Python must be in the same folders on every node. When one part ends badly, its
node falls silent, or the supervisor itself ends, every part ends: ``suite.launch.nodes.agent`` leaves no process.
"""

import signal
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from suite.errors import SchedulerError
from suite.launch.nodes.node import address_towards, interface_of, node_variables
from suite.launch.nodes.part import Part
from suite.launch.processes import STACK_DUMP_S
from suite.launch.telemetry_sampler import sampler_argv
from suite.launch.watch import NODE_LOG, PEER_PATIENCE_S, POLL_S, Watch, prepare
from suite.records.telemetry_file import sampler_log
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Launch

TOKEN: Final = "node-token"  # noqa: S105  below the run directory: every node has to see it

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of a host for the other hosts, and the interface that has it."""

    host: str
    address: str
    interface: str | None

    def __str__(self) -> str:
        name = self.host if self.host == self.address else f"{self.host} is {self.address}"
        return f"{name} on {self.interface or 'an interface that is not known'}"


def supervise(
    launch: Launch,
    connect: Callable[[int], Part],
    *,
    say: Say,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.Launcher``.

    ``connect`` starts the agent of a node, given its number; 0 is the head.

    Raises:
        StoreError: the run directory cannot be written, or contains a finished round.
        SchedulerError: a node does not answer before the round has begun, or cannot take part in it.
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
        started_utc, started_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        watch = Watch(case, run_dir, on_progress)
        ended_by = _wait(parts, watch, stop)
        if ended_by in ("timeout", "hung"):
            _dump_stacks(parts)
    finally:  # Ctrl-C too
        end_all(parts, launch.grace_s)
    watch.look()
    result = LaunchResult(
        exit_code=0, ended_by=ended_by, started_utc=started_utc, wall_time_s=time.monotonic() - started_s
    )
    result = _judged(result, parts)
    if result.why:
        say(result.why)  # the record does not name hosts
    return replace(result, nodes=tuple(part.host for part in parts))


def addresses(ready: Mapping[str, Mapping[str, Any]]) -> tuple[Address, ...]:
    """The addresses under which the hosts reach each other. A host that was reached by its loopback is this machine.

    Raises:
        SchedulerError: two of them are this machine, there is nobody else to learn this one's address from, or one was
            reached by IPv6.
    """
    elsewhere = [str(said["address"]) for said in ready.values() if said["address"]]
    found = []
    for host, said in ready.items():
        address, interface = said["address"], said["interface"]
        if address is None:
            if len(elsewhere) != len(ready) - 1 or not elsewhere:
                raise SchedulerError(f"{', '.join(ready)} are one machine: a round of several nodes wants several.")
            address = address_towards(elsewhere[0])
            interface = interface_of(address)
        if ":" in address:
            raise SchedulerError(
                f"{host} was reached at {address}, which is IPv6: torchrun's rendezvous and gloo are given IPv4 "
                "addresses alone. Let its last hop be IPv4, as by AddressFamily in the jump host's ssh configuration."
            )
        found.append(Address(host=host, address=address, interface=interface))
    return tuple(found)


def end_all(parts: Sequence[Part], grace_s: float) -> None:
    """End every part and wait until each host says so. A host that cannot say so ends its part by itself."""
    for part in parts:
        part.tell(command="end")
    for part in parts:
        part.finish(grace_s)


def _request(launch: Launch, rank: int, address: str | None) -> dict[str, Any]:
    token_path = Path(launch.run_dir) / TOKEN
    if rank == 0:
        token_path.write_text(uuid.uuid4().hex, encoding="utf-8")
    node = rank if launch.case.nnodes > 1 else None
    return {
        "address": address,
        "sampler": sampler_argv(Path(launch.run_dir), launch.case, node=node),
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
        found = addresses(ready)
        say("; ".join(map(str, found)) + f". Head: {found[0].host}")
        identity, port = uuid.uuid4().hex[:12], ready[found[0].host]["port"]
        env = [
            node_variables(head=found[0].address, peer=found[1].address, rank=rank, rendezvous_id=identity, port=port)
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


def _wait(parts: Sequence[Part], watch: Watch, stop: Event | None) -> EndedBy | None:
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
        if stop is not None and stop.is_set():
            return "interrupted"
        if ended_by := watch.look():
            return ended_by
        time.sleep(POLL_S)


def _dump_stacks(parts: Sequence[Part]) -> None:
    for part in parts:
        part.tell(command="dump_stacks")
    time.sleep(2 * STACK_DUMP_S)


def _judged(result: LaunchResult, parts: Sequence[Part]) -> LaunchResult:
    """Combine the endings of the parts. What the launcher saw comes first: it explains what the ranks say."""
    if result.ended_by == "lost":
        return replace(result, exit_code=1, why="; ".join(why for part in parts if (why := part.lost or part.refused)))
    failed = [part for part in parts if part.exit_code]
    if not failed:
        return result
    first = min(
        failed, key=lambda part: (not part.by_itself, (part.exit_code or 0) > 0)
    )  # a killed one explains others
    code = first.exit_code or 0
    if code < 0 and result.ended_by is None:
        why = f"torchrun on {first.host} was killed by signal {-code} ({signal.strsignal(-code)})"
        return replace(result, exit_code=code, why=why)
    return replace(result, exit_code=code)
