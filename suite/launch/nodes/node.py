"""Start torchrun on a node: ``python -m suite.launch.nodes.node LOGS ARGUMENTS…``, once on each, for every launcher.

The launcher of several nodes sets the variables below. Without them this machine is the only node, and nothing listens
beyond its loopback. This runs in the worker's Python, so it imports nothing else. Without these timeouts torchrun would
wait for 5 to 30 minutes. Without an address it would publish the host's name, which many nodes resolve to 127.0.1.1.
"""

import fcntl
import os
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from suite.schema.rank_protocol import of_rank

HEAD: Final = "LABSCALE_HEAD"  # how other nodes reach the first one
PEER: Final = "LABSCALE_PEER"  # any other node, for the head to learn its own address towards it
NODE_RANK: Final = "LABSCALE_NODE_RANK"  # 0 is the head
RENDEZVOUS_ID: Final = "LABSCALE_RENDEZVOUS_ID"
RENDEZVOUS_PORT: Final = "LABSCALE_RENDEZVOUS_PORT"

# For every node to be there: a file system may be slow to give the last one its Python. Where nodes start minutes
# apart, as pods do, ``suite.launch.nodes.wait_for_nodes`` comes before this.
JOIN_TIMEOUT_S: Final = 180
_TIMEOUTS: Final = f"join_timeout={JOIN_TIMEOUT_S},last_call_timeout=5,close_timeout=30,read_timeout=60"
LOOPBACK: Final = "127.0.0.1"
_DISCARD_PORT: Final = 9
_SIOCGIFADDR: Final = 0x8915  # ioctl(2), Linux


def node_variables(*, head: str, peer: str, rank: int, rendezvous_id: str, port: int) -> dict[str, str]:
    """Variables that tell one node how to join the others."""
    return {
        HEAD: head,
        PEER: peer,
        NODE_RANK: str(rank),
        RENDEZVOUS_ID: rendezvous_id,
        RENDEZVOUS_PORT: str(port),
    }


def address_towards(other: str) -> str:
    """The IPv4 address of this node that ``other`` sees. Nothing is sent to it.

    The name of a pod is known only once the pod exists, so it is asked for until a node must have joined.
    """
    deadline_s = time.monotonic() + JOIN_TIMEOUT_S
    while True:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect((other, _DISCARD_PORT))
                return str(probe.getsockname()[0])
        except socket.gaierror:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(1.0)


def interface_of(address: str) -> str | None:
    """The network interface with this IPv4 address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:  # it has no IPv4 address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def free_port() -> int:
    """A TCP port of this host that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def torchrun_arguments(logs: str, arguments: Sequence[str], environ: Mapping[str, str], address: str) -> list[str]:
    """torchrun's arguments for this node, then those that are the same on all nodes."""
    if HEAD not in environ:  # port 0: a free one, so that campaigns do not collide
        own = [f"--rdzv-endpoint={address}:0", f"--log-dir={logs}"]
    else:
        rank = int(environ[NODE_RANK])
        own = [
            f"--rdzv-id={environ[RENDEZVOUS_ID]}",
            f"--rdzv-endpoint={address if rank == 0 else environ[HEAD]}:{environ[RENDEZVOUS_PORT]}",
            f"--rdzv-conf=is_host={'true' if rank == 0 else 'false'},{_TIMEOUTS}",
            "--monitor-interval=0.5",
            f"--log-dir={logs}/node-{rank}",
        ]
    return ["--rdzv-backend=c10d", *own, f"--local-addr={address}", *arguments]


def own_address(environ: Mapping[str, str]) -> str:
    """The address of this node for the others, which alone may reach what its ranks listen on.

    Exits if the others' name means nothing here.
    """
    if HEAD not in environ:
        return LOOPBACK
    if environ[NODE_RANK] == "0" and interface_of(environ[HEAD]) is not None:  # the others were given this very address
        return environ[HEAD]
    other = environ[PEER] if environ[NODE_RANK] == "0" else environ[HEAD]
    try:
        return address_towards(other)
    except socket.gaierror as error:
        sys.exit(
            f"node {environ[NODE_RANK]}: {other} has no IPv4 address that is known here, after {JOIN_TIMEOUT_S} s of"
            f" asking ({error.strerror}). Name the nodes by what resolves on each of them, or by IPv4 addresses."
        )


def main(argv: Sequence[str]) -> None:
    environ = of_rank(os.environ)
    address = own_address(environ)
    interface = interface_of(address)
    if interface is not None:  # what the user set is kept; NCCL takes a name without = for the beginning of one
        environ = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": f"={interface}", **environ}
    print(f"node {environ.get(NODE_RANK, '0')}: {address} on {interface}", flush=True)
    arguments = torchrun_arguments(argv[1], argv[2:], environ, address)
    os.execve(sys.executable, [sys.executable, "-m", "tasks.torchrun", address, *arguments], environ)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv)
