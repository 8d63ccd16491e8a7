"""What the data of a round crossed, as it is stored: the part of ``suite.schema.record`` that speaks of networks.

Imports the standard library only, as that does. A value that was not measured is ``None``, never 0.
"""

from dataclasses import dataclass
from typing import Final, Literal

# What data of a collective cross. host_memory: between processes of one host, through its memory or its loopback.
Interconnect = Literal["nvlink", "pcie", "host_memory", "infiniband", "roce", "ethernet"]
UNKNOWN_INTERFACE: Final = "unknown"  # whose socket tells its second IPv4 address only


@dataclass(frozen=True, kw_only=True)
class Route:
    """One way of data between ranks, by the word of NCCL's log for it."""

    kind: str  # P2P/CUMEM, P2P/IPC/read, SHM/direct/direct, NET/Socket, NET/IB/GDRDMA, …
    between_nodes: bool
    pairs: int  # of ranks, each direction counted
    channels: int  # of all these pairs


@dataclass(frozen=True, kw_only=True)
class Transport:
    """How the ranks reached each other, as the library said in this round, or as its sockets were bound."""

    library: Literal["nccl", "gloo"]
    version: str | None = None
    interfaces: tuple[str, ...] = ()  # of the network, on any node: eth0, mlx5_0
    routes: tuple[Route, ...] = ()  # NCCL's
    within_node: tuple[Interconnect, ...] = ()  # empty: not known, or nothing was sent there
    between_nodes: tuple[Interconnect, ...] = ()
    emulated: bool | None = None  # several nodes share a machine; None: not known
    nvls: bool | None = None  # NCCL connected the reductions inside NVSwitch; which collective uses them it decides
    unread_lines: int = 0  # of NCCL's log, that speak of channels in words that labscale does not know
    logged_while_steady: bool | None = None  # NCCL wrote to its log also in steady iterations, which costs time

    @property
    def interconnect(self) -> str | None:
        """What stands beside a figure: what the round's data crossed between its nodes, or within its one node."""
        words = " and ".join(self.between_nodes or self.within_node)
        if self.emulated:
            return f"emulated ({words})" if words else "emulated"
        return words or None
