"""The interconnects that a round's data crossed: the part of ``suite.schema.record`` about networks.

Imports the standard library only. A value that was not measured is ``None``, never 0.
"""

from dataclasses import dataclass
from typing import Final, Literal

from suite.schema.constraints import Count

# host_memory: between processes of one host, through its memory or its loopback.
Interconnect = Literal["nvlink", "pcie", "host_memory", "infiniband", "roce", "ethernet"]
UNKNOWN_INTERFACE: Final = "unknown"  # the socket has a second IPv4 address of an interface


@dataclass(frozen=True, kw_only=True)
class Route:
    """One kind of connection between ranks, in the words of NCCL's log."""

    kind: str  # P2P/CUMEM, P2P/IPC/read, SHM/direct/direct, NET/Socket, NET/IB/GDRDMA, …
    between_nodes: bool
    pairs: Count  # of ranks, counted in each direction
    channels: Count  # of all these pairs


@dataclass(frozen=True, kw_only=True)
class Transport:
    """How the ranks exchanged data in this round, from NCCL's log or gloo's sockets."""

    library: Literal["nccl", "gloo"]
    version: str | None = None
    interfaces: tuple[str, ...] = ()  # of the network, on any node: eth0, mlx5_0
    routes: tuple[Route, ...] = ()  # NCCL's
    within_node: tuple[Interconnect, ...] = ()  # empty: unknown, or no data
    between_nodes: tuple[Interconnect, ...] = ()
    emulated: bool | None = None  # several nodes share a machine; None: unknown
    nvls: bool | None = None  # NCCL connected the reductions inside NVSwitch, and decides which collectives use them
    unread_lines: Count = 0  # of NCCL's log, about channels in unknown words
    logged_while_steady: bool | None = None  # NCCL also logged in the window, which costs time

    @property
    def interconnect(self) -> str | None:
        """What the round's data crossed between its nodes, or within its only node, as a figure shows it."""
        words = " and ".join(self.between_nodes or self.within_node)
        if self.emulated:
            return f"emulated ({words})" if words else "emulated"
        return words or None
