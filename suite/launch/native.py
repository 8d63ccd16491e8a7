"""The launchers ``native`` and ``emulated``: rounds as processes of this machine, or of its parts that stand for nodes.

Each torchrun is a child process, watched, and ended with everything it started. For ``emulated``, ``NCCL_HOSTID`` makes
NCCL take every part for a separate host, so traffic between parts crosses loopback sockets. That measures the cost of
the software between nodes, not of a network: such a round is marked ``emulated``.
"""

import functools
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.env_check.report import env_check
from suite.errors import UsageError
from suite.external.machine import capture, cores_in_order
from suite.files.wording import counted
from suite.install.bundle_contents import require_device
from suite.install.worker import check_python, own_package_names, provision_own_worker, provision_worker
from suite.launch.contract import TO_ITS_END, Asked, LauncherEntry, NoSettings, RunControl, Runtime
from suite.launch.images.worker import image_digest_of
from suite.launch.nodes.node import LOOPBACK, free_port, node_variables
from suite.launch.processes import RunProcesses
from suite.launch.telemetry_sampler import sampling
from suite.launch.watch import LOG, NODE_LOG, PEER_PATIENCE_S, Watch, prepare
from suite.matrix.resources import Resources
from suite.options.declaration import option
from suite.options.types import several
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Environment, Launch


def run(launch: Launch, control: RunControl = TO_ITS_END) -> LaunchResult:
    """Run ``launch`` on this machine; see ``suite.launch.contract``."""
    prepare(Path(launch.run_dir), launch.case)
    return _run([launch], control)


def run_in_parts(
    launch: Launch, control: RunControl = TO_ITS_END, *, gpus: Sequence[str], cpus: Sequence[int]
) -> LaunchResult:
    """Run ``launch`` on parts of this machine, of which rounds may use ``gpus`` and ``cpus``."""
    prepare(Path(launch.run_dir), launch.case)
    return _run(parts_of(launch, gpus=gpus, cpus=cpus), control)


def parts_of(launch: Launch, *, gpus: Sequence[str], cpus: Sequence[int]) -> list[Launch]:
    """What each node starts, on GPUs of its own and an equal share of ``cpus``, in their order."""
    case = launch.case
    if case.nnodes == 1:
        return [launch]
    per_node, cores = case.gpus_per_node, len(cpus) // case.nnodes
    identity, port = uuid.uuid4().hex[:12], free_port()
    parts = []
    for node in range(case.nnodes):
        env = {
            **launch.env,
            **node_variables(head=LOOPBACK, peer=LOOPBACK, rank=node, rendezvous_id=identity, port=port),
            "NCCL_HOSTID": f"labscale-node-{node}",
        }
        if case.device == "cuda":
            env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[node * per_node : (node + 1) * per_node])
        parts.append(replace(launch, env=env, cpus=tuple(cpus[node * cores : (node + 1) * cores])))
    return parts


def visible_gpus(environ: Mapping[str, str], num_gpus: int) -> tuple[str, ...]:
    """Names of the GPUs that the caller's CUDA_VISIBLE_DEVICES leaves of ``num_gpus``."""
    visible = environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(num_gpus))))
    return tuple(name.strip() for name in visible.split(",") if name.strip())


def _run(launches: Sequence[Launch], control: RunControl) -> LaunchResult:
    """Run one torchrun for each launch, beside a sampler, to the end of all of them."""
    nodes: list[RunProcesses] = []
    with ExitStack() as samplers:
        logs: list[Path] = []
        for number, launch in enumerate(launches):
            node = number if len(launches) > 1 else None
            logs.append(Path(launch.run_dir) / (LOG if node is None else NODE_LOG.format(node)))
            logs[-1].parent.mkdir(exist_ok=True)
            gpus = launch.env.get("CUDA_VISIBLE_DEVICES")
            samplers.enter_context(sampling(launch, node=node, visible_gpus=gpus))
        watch = Watch(launches[0], control)
        with ExitStack() as ending:  # Ctrl-C too, and when a torchrun ended by itself, for what it left
            for launch, log_path in zip(launches, logs, strict=True):
                with log_path.open("wb") as log:
                    nodes.append(RunProcesses(launch.argv, launch.env, log, cpus=launch.cpus))
                ending.callback(nodes[-1].end, launch.grace_s)
            together = _Together(nodes)
            ended_by = watch.wait(together.exit_code)
            if ended_by in ("timeout", "hung"):
                for processes in nodes:
                    processes.dump_stacks()
        codes = [processes.root.wait() for processes in nodes]
        result = watch.result(together.failure or next((code for code in codes if code), 0), ended_by)
        return replace(result, oom_kills=nodes[0].oom_kills())


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


def on_this_machine(asked: Asked) -> Runtime:
    """The worker environments of this machine, or the Python that the user brought, started by torchrun here."""
    require_device(asked.device)
    setup = asked.options.setup
    worker = provision_worker(stack=asked.stack, setup=setup, on_message=asked.say)
    if setup.worker_python is not None:
        also = [name for own in asked.own_workers for name in own_package_names(own)]
        check_python(worker.python, stack=asked.stack, also=also)
    own_workers = {
        own: provision_own_worker(own, worker, setup=setup, on_message=asked.say)
        for own in asked.own_workers
        if setup.worker_python is None or own.packages
    }
    others = tuple(own.python for own in own_workers.values())
    return Runtime(
        worker=worker,
        own_workers=own_workers,
        launch=run,
        check=functools.partial(env_check, replace(asked.request, other_workers=others)),
        python_path=os.environ.get("PYTHONPATH"),
    )


def all_of(machine: Environment) -> Resources:
    """One node, with all that the machine has."""
    return Resources(nnodes=1, gpus_per_node=len(machine.gpus), cpus_per_node=machine.num_cpus or 1)


def in_this_image(here: Runtime) -> Runtime:
    """Name the image that labscale itself runs in, if it runs in one and was told its digest."""
    return replace(here, image_digest=image_digest_of(os.environ))


NATIVE: Final = LauncherEntry(
    name="native",
    resources=lambda _, machine: all_of(machine),
    provision=lambda _, asked: in_this_image(on_this_machine(asked)),
    settings=NoSettings,
    installs_workers=True,
    runs_here=True,
    takes_turns=True,
)


@dataclass(frozen=True, kw_only=True)
class EmulatedSettings:
    emulate_nodes: int | None = option(
        "split this machine into N simulated nodes with sockets between them; results are marked emulated",
        type=several, metavar="N",
        needs="its own --launcher (emulated), which takes parts of this machine for nodes",
    )  # fmt: skip


def _emulated_nodes(settings: EmulatedSettings, machine: Environment) -> Resources:
    """The machine as several nodes, each of which needs a core."""
    if settings.emulate_nodes is None:
        raise UsageError(
            "--launcher emulated takes parts of this machine for nodes and needs --emulate-nodes N, got no number of "
            "nodes. Add it, or leave --launcher out."
        )
    whole = all_of(machine)
    if settings.emulate_nodes > whole.cpus_per_node:
        raise UsageError(
            f"--emulate-nodes is {settings.emulate_nodes}, and this machine has "
            f"{counted(whole.cpus_per_node, 'core')}, of which each node needs one. Give {whole.cpus_per_node} or "
            "fewer, or run on a larger machine."
        )
    return replace(whole, nnodes=settings.emulate_nodes, is_one_host=True)


def _provision_parts(_settings: EmulatedSettings, asked: Asked) -> Runtime:
    gpus = visible_gpus(os.environ, len(capture().gpus))
    launch = functools.partial(run_in_parts, gpus=gpus, cpus=cores_in_order())
    return in_this_image(replace(on_this_machine(asked), launch=launch))


EMULATED: Final = LauncherEntry(
    name="emulated",
    resources=_emulated_nodes,
    provision=_provision_parts,
    settings=EmulatedSettings,
    chosen_by="emulate_nodes",
    installs_workers=True,
)
