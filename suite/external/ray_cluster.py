"""Asks Ray for its nodes, reserves some, and runs programs on them.

Ray ends the process that uses it when the cluster is gone. Therefore only ``suite.launch.nodes.ray_driver`` imports
this, in a process of its own.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from suite.errors import SchedulerError
from suite.external.program import LineProgram, ProgramRun, run_program

ADDRESS: Final = "RAY_ADDRESS"  # Ray's own variable
GPUS: Final = "CUDA_VISIBLE_DEVICES"  # by which Ray names the GPUs that it has given to a process
START_TIMEOUT_S: Final = 60.0  # for a process on a node: Python may come from a slow file system
LISTEN_S: Final = 0.5  # for which a node waits for lines before it answers that there are none


@dataclass(frozen=True, kw_only=True)
class RayNode:
    """A node that is alive, and what Ray may give away there."""

    node_id: str
    address: str  # IPv4, for the other nodes
    gpus: int
    cpus: int


@contextmanager
def connected(checkout: Path) -> Iterator[None]:
    """Be a driver of the cluster that ``RAY_ADDRESS`` names, or else of the one that this machine belongs to.

    On every node, Ray's processes of this driver run in this Python, and import from ``checkout``.

    Raises:
        SchedulerError: there is no cluster, or it has another version of Ray or Python.
    """
    address = os.environ.get(ADDRESS) or "auto"
    if "://" in address or address == "local":
        raise SchedulerError(
            f"{ADDRESS}={address} cannot be used; allowed is HOST:PORT of a cluster that this machine is a node of. "
            "Run labscale on a node of the cluster, and set HOST:PORT or nothing."
        )
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"py_executable": sys.executable, "env_vars": {"PYTHONPATH": str(checkout)}},
        )
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise SchedulerError(_why_not(" ".join(str(error).split()), address)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _why_not(message: str, address: str) -> str:
    here = f"Ray {ray.__version__} with Python {sys.version.split()[0]}"
    if message.startswith("Version mismatch"):
        return (
            f"The Ray cluster has another version than labscale: {message} Allowed is {here} alone. Start the cluster "
            f"with that Ray, as by {Path(sys.executable).with_name('ray')}."
        )
    return (
        f"There is no Ray cluster at {address}: {message} labscale must run on a node of a cluster of {here}, which "
        f"`ray start --head` and `ray start --address=HOST:PORT` start; {ADDRESS}=HOST:PORT names one of several."
    )


def alive_nodes() -> tuple[RayNode, ...]:
    """The nodes of the cluster that are alive, this machine first."""
    here = ray.get_runtime_context().get_node_id()
    nodes = [
        RayNode(
            node_id=node["NodeID"],
            address=node["NodeManagerAddress"],
            gpus=int(node["Resources"].get("GPU", 0)),
            cpus=int(node["Resources"].get("CPU", 0)),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]
    return tuple(sorted(nodes, key=lambda node: (node.node_id != here, node.address)))


def run_on(nodes: Sequence[RayNode], argv: Sequence[str], *, working_dir: Path, timeout_s: float) -> list[ProgramRun]:
    """Run a program on all nodes at once, each beside whatever else runs there.

    Raises:
        SchedulerError: a node does not run it.
    """
    asked = [
        ray.remote(_run)
        .options(
            num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        )
        .remote(tuple(argv), str(working_dir), timeout_s)
        for node in nodes
    ]
    try:
        return [ProgramRun(**answer) for answer in ray.get(asked, timeout=timeout_s + START_TIMEOUT_S)]
    except RayError as error:
        raise SchedulerError(f"A node of Ray does not run {' '.join(argv)}: {_first_line(error)}") from error


def _run(argv: Sequence[str], working_dir: str, timeout_s: float) -> dict[str, Any]:
    """Run a program; this is called on a node."""
    _as_ray_was_started()
    os.chdir(working_dir)
    return asdict(run_program(argv, environ=_environ_of_ray(), timeout_s=timeout_s))


class Reservation:
    """Nodes of the cluster of which a part is given to this driver alone; it is given back when the driver ends."""

    def __init__(self, num_nodes: int, *, gpus: int, cpus: int, timeout_s: float) -> None:
        """Reserve ``gpus`` GPUs on each of ``num_nodes`` different nodes, or ``cpus`` CPUs where that is 0.

        Raises:
            SchedulerError: they are not free in time.
        """
        bundle = {"GPU": gpus} if gpus else {"CPU": cpus}
        group: PlacementGroup = placement_group([bundle] * num_nodes, strategy="STRICT_SPREAD")
        if not group.wait(timeout_s):
            what = ", ".join(f"{number} {name}" for name, number in bundle.items())
            raise SchedulerError(
                f"Ray has not reserved {num_nodes} nodes with {what} each within {timeout_s:g} s: other work has them. "
                "`ray status` shows what is free. Wait for it or end it, then run the same command again."
            )
        own = {"max_restarts": 0, "num_gpus": gpus, "num_cpus": 0 if gpus else cpus}
        self._carriers = [  # Ray starts them at the same time, which takes some seconds
            ray.remote(_Carrier)
            .options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, index), **own)
            .remote()
            for index in _in_order(group)
        ]

    def start(self, index: int, argv: Sequence[str], *, working_dir: Path) -> "NodeProgram":
        """Start a program on one of the nodes, of which 0 is this machine if it was reserved.

        Raises:
            SchedulerError: the node does not start it, or its processes would have a low priority.
        """
        carrier = self._carriers[index]
        try:
            address, refusal = ray.get(carrier.start.remote(tuple(argv), str(working_dir)), timeout=START_TIMEOUT_S)
        except RayError as error:
            raise SchedulerError(f"Ray does not start node {index} of the run: {_first_line(error)}") from error
        if refusal:
            raise SchedulerError(f"{address} {refusal}")
        return NodeProgram(address, carrier)


def _in_order(group: PlacementGroup) -> list[int]:
    """The bundles in the order of ``alive_nodes``. Ray's own order differs each time, and so would the head."""
    where: Mapping[int, str] = placement_group_table(group)["bundles_to_node_id"]
    order = {node.node_id: place for place, node in enumerate(alive_nodes())}
    return sorted(where, key=lambda bundle: order.get(where[bundle], len(order)))


class NodeProgram:
    """A program on a node, whose lines travel through Ray. It has to end when its stdin closes."""

    def __init__(self, address: str, carrier: Any) -> None:
        self.address = address
        self._carrier = carrier
        self._answer = carrier.listen.remote(LISTEN_S)
        self._lost = ""

    def send(self, line: str) -> None:
        """Send a line; a node that is gone is seen by ``read``."""
        self._carrier.write.remote(line)

    def read(self) -> list[str | None]:
        """The lines that have come since the last call, without waiting; None is the end, or Ray has lost the node."""
        if not ray.wait([self._answer], timeout=0)[0]:
            return []
        try:
            lines: list[str | None] = ray.get(self._answer)
        except RayError as error:
            self._lost = _why_lost(error)
            return [None]
        self._answer = self._carrier.listen.remote(LISTEN_S)
        return lines

    def errors(self) -> str:
        """Why Ray has lost the node, or its process there."""
        return self._lost

    def end(self, _wait_s: float) -> None:
        """Close the program's stdin."""
        ray.kill(self._carrier)


class _Carrier:
    """Carries lines to and from a program; this is an actor on a node.

    The program is not its child, but one of init: Ray kills the children of its processes, and not their children.
    """

    def start(self, argv: Sequence[str], working_dir: str) -> tuple[str, str | None]:
        """Start the program. Return the address of this node, and why it was not started."""
        address: str = ray.util.get_node_ip_address()
        if refusal := _as_ray_was_started():
            return address, refusal
        self._program = LineProgram(
            ("setsid", "--fork", *argv),
            working_dir=Path(working_dir),
            environ={**_environ_of_ray(), **{name: os.environ[name] for name in (GPUS,) if name in os.environ}},
            errors_are_lines=True,
        )
        return address, None

    def write(self, line: str) -> None:
        self._program.send(line)

    def listen(self, wait_s: float) -> list[str | None]:
        return self._program.read(wait_s)


def _as_ray_was_started() -> str | None:
    """Undo what Ray does to its processes, for those that this one starts; return why that is not possible.

    Ray blocks SIGINT, and lowers the priority, so that anything else on the node would go first.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    wanted = os.getpriority(os.PRIO_PROCESS, os.getppid())
    try:
        os.setpriority(os.PRIO_PROCESS, 0, wanted)
    except PermissionError:
        got = os.getpriority(os.PRIO_PROCESS, 0)
        return (
            f"gives Ray's processes niceness {got}, allowed is {wanted}: everything else there would go before the "
            "training. Stop Ray there, and start it with RAY_worker_niceness=0 in its environment."
        )
    return None


def _environ_of_ray() -> Mapping[str, str]:
    """The environment that Ray was started in on this node; Ray's own processes also have OMP_NUM_THREADS=1."""
    return psutil.Process(os.getppid()).environ()


def _why_lost(error: RayError) -> str:
    """What Ray says of an actor, without the ids that differ each time."""
    if isinstance(error, ActorUnavailableError):
        return "Ray does not reach its process there any more"
    if isinstance(error, ActorDiedError):
        return "Ray's process there has died"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
