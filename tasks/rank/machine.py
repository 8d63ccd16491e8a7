"""A rank's machine and network: NUMA nodes, NCCL's own log, the interfaces of gloo's sockets, and the nodes' clocks.

Imports no torch.
"""

import hashlib
import ipaddress
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from suite.schema.observations import UNKNOWN_INTERFACE

# Written while communicators are made; NCCL's lines of every collective are in other subsystems.
NCCL_SUBSYSTEMS: Final = "INIT,NET,GRAPH"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
EXCHANGES: Final = 24  # with each node; the first one waits until rank 0 gets to it
SYSFS: Final = Path("/sys")


def machine_id() -> str | None:
    """A word that is the same in every process on this kernel, and says nothing else of it."""
    try:
        return hashlib.sha256(_BOOT_ID.read_bytes()).hexdigest()[:12]
    except OSError:
        return None


# ---- NCCL ----


def nccl_log_path(run_dir: Path, rank: int) -> Path:
    return run_dir / "logs" / f"nccl-rank-{rank}.log"


def nccl_log_variables(run_dir: Path, rank: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Have NCCL say in a file which way data go; none when the user asked it for something else."""
    if any(name.startswith("NCCL_DEBUG") for name in environ):
        return {}
    path = nccl_log_path(run_dir, rank)
    path.parent.mkdir(exist_ok=True)
    escaped = str(path).replace("%", "%%")  # NCCL replaces %h and %p by host and process
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": NCCL_SUBSYSTEMS, "NCCL_DEBUG_FILE": escaped}


def nccl_log_written_s(run_dir: Path, rank: int, clock_zero_s: float) -> float | None:
    """When NCCL last wrote to its log, counted from ``clock_zero_s`` of the monotonic clock; None without a log."""
    try:
        written_unix_s = nccl_log_path(run_dir, rank).stat().st_mtime
    except FileNotFoundError:
        return None
    return written_unix_s - time.time() + time.perf_counter() - clock_zero_s


# ---- gloo ----


def bound_interfaces(store_port: int) -> list[str]:
    """Interfaces of this process's TCP connections, but for those to the store that joined the ranks."""
    import psutil

    process = psutil.Process()
    connections = process.net_connections if hasattr(process, "net_connections") else process.connections  # psutil 5
    names = {
        address.address.partition("%")[0]: interface
        for interface, addresses in psutil.net_if_addrs().items()
        for address in addresses
    }
    return sorted(
        {
            _interface_of(connection.laddr.ip, names)
            for connection in connections("tcp")
            if connection.status == psutil.CONN_ESTABLISHED
            and store_port not in (connection.laddr.port, connection.raddr.port)
        }
    )


def _interface_of(text: str, names: Mapping[str, str]) -> str:
    """Never the address itself, which would be published: the whole of 127/8 is the loopback's."""
    address = ipaddress.ip_address(text)
    address = (address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None) or address
    return "lo" if address.is_loopback else names.get(str(address), UNKNOWN_INTERFACE)


# ---- clocks ----
# How far apart the clocks of several nodes are is measured as NTP does, through the store that joined the ranks. The
# first rank of each node asks rank 0 for its clocks, many times. Rank 0 reads its clock between question and answer, so
# the middle of the two is wrong by at most half of the round trip. The shortest round trip is the best measurement.

type When = Literal["start", "end"]  # of the round


def clock_offset(
    store: Any,
    when: When,
    *,
    rank: int,
    first_ranks: tuple[int, ...],
    clocks: Callable[[], tuple[float, float]] = lambda: (time.perf_counter(), time.time()),
) -> dict[str, float] | None:
    """Compare this node's clocks with those of rank 0, which gets None; the first rank of every node calls this.

    ``store`` is torch's, whose ``get`` waits until the key exists. ``clocks`` reads the monotonic and wall clock [s].
    ``offset_s`` is this node's monotonic clock, which times samples, minus that of rank 0, and ``wall_offset_s`` that
    of the wall clock, which times errors [s]. The true offset differs by at most ``bound_s``.
    """
    if rank == 0:
        for other in first_ranks[1:]:
            for number in range(EXCHANGES):
                store.get(f"labscale/clock/{when}/{other}/question-{number}")
                store.set(f"labscale/clock/{when}/{other}/answer-{number}", json.dumps(clocks()))
        return None
    offsets = []
    for number in range(EXCHANGES):
        asked_s, wall_s = clocks()
        store.set(f"labscale/clock/{when}/{rank}/question-{number}", "")
        there_s, there_wall_s = json.loads(store.get(f"labscale/clock/{when}/{rank}/answer-{number}"))
        bound_s = (clocks()[0] - asked_s) / 2
        offset_s, wall_offset_s = asked_s + bound_s - there_s, wall_s + bound_s - there_wall_s
        offsets.append({"offset_s": offset_s, "bound_s": bound_s, "wall_offset_s": wall_offset_s})
    return min(offsets, key=lambda offset: offset["bound_s"])


# ---- NUMA ----
# A core of another node than the GPU's reaches the GPU through the link between the processors. A virtual machine often
# hides the GPU's node.


def nodes_of_cores(cores: Iterable[int], sysfs: Path = SYSFS) -> str | None:
    """Return the nodes as text, such as ``0`` or ``0,1``; None if the kernel does not show them."""
    wanted = {str(core) for core in cores}
    nodes = (sysfs / "devices/system/node").glob("node[0-9]*")
    numbers = sorted(
        int(node.name.removeprefix("node"))
        for node in nodes
        if wanted & {path.name.removeprefix("cpu") for path in node.glob("cpu[0-9]*")}
    )
    return ",".join(map(str, numbers)) or None


def node_of_gpu(properties: Any, sysfs: Path = SYSFS) -> int | None:
    """Return the node of the GPU with these properties, which are torch's; None if the kernel does not know it."""
    try:
        address = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        node = int((sysfs / "bus/pci/devices" / address / "numa_node").read_text(encoding="ascii"))
    except (AttributeError, OSError, ValueError):  # an older torch; a container without this part of /sys
        return None
    return None if node < 0 else node
