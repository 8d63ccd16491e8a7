"""Run a round of several nodes on this machine alone: each node is a part of its GPUs and cores.

``NCCL_HOSTID`` makes NCCL take every part for a separate host, so traffic between parts crosses loopback sockets. That
measures the cost of the software between nodes, not of a network: such a round is marked ``emulated``.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Final

from suite.launch.native.run import run as run_native
from suite.launch.nodes.node import free_port, node_variables
from suite.launch.processes import RunProcesses
from suite.launch.telemetry_sampler import beside, sampler_argv
from suite.launch.watch import NODE_LOG, PEER_PATIENCE_S, Watch, prepare, wait
from suite.records.telemetry_file import sampler_log
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Launch

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Part:
    """The GPUs and cores of this machine that stand for one node."""

    gpus: tuple[str, ...]  # as CUDA_VISIBLE_DEVICES names them; () on the CPU
    cpus: tuple[int, ...]


def parts_of(case: Case, *, gpus: Sequence[str], cpus: Sequence[int]) -> tuple[Part, ...]:
    """One part for each node: as many GPUs as it has ranks, and an equal share of ``cpus``, in their order."""
    ranks, cores = case.nproc_per_node, len(cpus) // case.nnodes
    return tuple(
        Part(
            gpus=tuple(gpus[node * ranks : (node + 1) * ranks]) if case.device == "cuda" else (),
            cpus=tuple(cpus[node * cores : (node + 1) * cores]),
        )
        for node in range(case.nnodes)
    )


def visible_gpus(visible: str | None, num_gpus: int) -> tuple[str, ...]:
    """Names of the GPUs that the caller's CUDA_VISIBLE_DEVICES leaves of ``num_gpus``."""
    if visible is None:
        return tuple(map(str, range(num_gpus)))
    return tuple(name.strip() for name in visible.split(",") if name.strip())


def run(
    launch: Launch,
    *,
    gpus: Sequence[str],
    cpus: Sequence[int],
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.Launcher``. The native launcher runs a case of one node.

    ``gpus`` and ``cpus``: all that rounds may use here.
    """
    if launch.case.nnodes == 1:
        return run_native(launch, on_progress=on_progress, stop=stop)
    run_dir, case = Path(launch.run_dir), launch.case
    prepare(run_dir, case)
    parts = parts_of(case, gpus=gpus, cpus=cpus)
    with ExitStack() as stack:
        for node, part in enumerate(parts):
            (run_dir / NODE_LOG.format(node)).parent.mkdir()
            sampler = sampler_argv(run_dir, case, node=node)
            stack.enter_context(beside(sampler, run_dir / sampler_log(node), visible_gpus=",".join(part.gpus)))
        return _run(launch, parts, Watch(case, run_dir, on_progress), stop)


def _run(launch: Launch, parts: Sequence[Part], watch: Watch, stop: Event | None) -> LaunchResult:
    started_utc, started_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    identity, port = uuid.uuid4().hex[:12], free_port()
    with ExitStack() as ending:  # Ctrl-C too, and when a node ended by itself, for what it left
        nodes = []
        for rank, part in enumerate(parts):
            variables = node_variables(head=LOOPBACK, peer=LOOPBACK, rank=rank, rendezvous_id=identity, port=port)
            env = {**launch.env, **variables, "NCCL_HOSTID": f"labscale-node-{rank}"}
            if part.gpus:
                env["CUDA_VISIBLE_DEVICES"] = ",".join(part.gpus)
            with (Path(launch.run_dir) / NODE_LOG.format(rank)).open("wb") as log:
                nodes.append(RunProcesses.start(launch.argv, env, log, cpus=part.cpus))
            ending.callback(nodes[-1].end, launch.grace_s)
        together = _Together(nodes)
        ended_by = wait(together.exit_code, watch, stop)
        if ended_by in ("timeout", "hung"):
            for node in nodes:
                node.dump_stacks()
    watch.look()
    codes = [node.root.wait() for node in nodes]
    return LaunchResult(
        exit_code=together.failure or next((code for code in codes if code), 0),
        ended_by=ended_by,
        started_utc=started_utc,
        wall_time_s=time.monotonic() - started_s,
        oom_kills=nodes[0].oom_kills(),
    )


class _Together:
    """The endings of all nodes as one. When one node ends badly, the others get a moment to say why."""

    def __init__(self, nodes: Sequence[RunProcesses]) -> None:
        self.failure: int | None = None  # the first exit code that is not 0; later ones may be our doing
        self._nodes = nodes
        self._failed_s = 0.0

    def exit_code(self, wait_s: float) -> int | None:
        codes = [node.exit_code(wait_s / len(self._nodes)) for node in self._nodes]
        if self.failure is None and (failed := [code for code in codes if code]):
            self.failure, self._failed_s = failed[0], time.monotonic()
        if None not in codes:
            return self.failure or 0
        is_over = self.failure is not None and time.monotonic() - self._failed_s > PEER_PATIENCE_S
        return self.failure if is_over else None
