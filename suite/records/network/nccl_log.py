"""Reads NCCL's log, as it writes it with NCCL_DEBUG=INFO. Pure.

It knows the lines of NCCL 2.5 to 2.28, whose wording changed here and there. A line about a channel in other words is
counted and skipped.
"""

import re
from dataclasses import dataclass
from typing import Final

# Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/3/GDRDMA; before 2.12 without /0, and with bus ids in brackets.
_CHANNEL: Final = re.compile(
    r"Channel (?P<channel>\d+(?:/\d+)?) : (?P<source>\d+)\[\w+\] -> (?P<target>\d+)\[\w+\] "
    r"(?:\[(?:send|receive)\] )?via (?P<kind>(?:P2P|SHM|NET|COLLNET)/\S.*?|direct shared memory)(?: comm 0x.*)?$"
)
_SPEAKS_OF_A_CHANNEL: Final = re.compile(r"\bChannel \S+ :.* via ")
_NUMBER: Final = re.compile(r"/\d+(?:\(\d+\))?(?=/|$)")  # of a device, and of the one that relays
_NETWORK: Final = re.compile(r"NET/(?P<name>[\w .-]+?) ?: Using (?P<devices>\[\d+\].*)")
_DEVICE: Final = re.compile(r"\[\d+\](?P<name>[^\s:]+):(?:\d+/(?P<layer>\w+))?")
_VERSION: Final = re.compile(r"NCCL version (\d[\w.]*)")
_NODES: Final = re.compile(r"comm 0x\w+ rank \d+ nRanks \d+ nNodes (\d+)")
_PATTERN: Final = re.compile(r"Pattern \d+, .*\btype (?P<within>\w+)/(?P<between>\w+)")
_NVLS: Final = re.compile(r"Connected NVLS tree")


@dataclass(frozen=True, kw_only=True)
class Connection:
    """One direction of one channel between two ranks."""

    source: int
    target: int
    channel: str
    kind: str  # without device numbers


@dataclass(frozen=True, kw_only=True)
class NcclLog:
    """The facts of one rank's log."""

    version: str | None = None
    nnodes: int | None = None  # nodes that NCCL distinguishes, which NCCL_HOSTID changes
    connections: frozenset[Connection] = frozenset()
    interfaces: frozenset[str] = frozenset()
    link_layers: frozenset[str] = frozenset()  # of InfiniBand verbs: IB, RoCE
    paths: frozenset[str] = frozenset()  # of each graph, the worst between GPUs of a node: NVL, PIX, PXB, PHB, SYS
    nvls: bool = False
    unread_lines: int = 0


def read_log(text: str) -> NcclLog:
    """Read the lines about the network; skip all others."""
    connections, interfaces, layers, paths = set(), set(), set(), set()
    unread = 0
    for line in text.splitlines():
        if found := _CHANNEL.search(line):
            connections.add(
                Connection(
                    source=int(found["source"]),
                    target=int(found["target"]),
                    channel=found["channel"],
                    kind=_NUMBER.sub("", found["kind"]),
                )
            )
        elif _SPEAKS_OF_A_CHANNEL.search(line):
            unread += 1
        elif found := _NETWORK.search(line):
            for device in _DEVICE.finditer(found["devices"].partition("; OOB")[0]):
                interfaces.add(device["name"])
                layers |= {device["layer"]} - {None}
        elif found := _PATTERN.search(line):
            paths.add(found["within"])
    version, nodes = _VERSION.search(text), _NODES.findall(text)
    return NcclLog(
        version=version[1] if version else None,
        nnodes=max(map(int, nodes), default=None),
        connections=frozenset(connections),
        interfaces=frozenset(interfaces),
        link_layers=frozenset(layers),
        paths=frozenset(paths),
        nvls=_NVLS.search(text) is not None,
        unread_lines=unread,
    )
