"""What lies between the ranks of a round: the offsets of the nodes' clocks, and how data travelled. Pure."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from suite.records.rank_file import RankFile
from suite.schema.observations import UNKNOWN_INTERFACE, Interconnect, Route, Transport
from suite.schema.record import Case, NodeClock, RunRecord
from suite.statistics.reduce import window

NEEDED_S: Final = 0.1  # half the time between two telemetry samples; a coarser clock would shift whole samples
_DIGITS: Final = 9  # nanoseconds


def node_clocks(case: Case, files: Sequence[RankFile]) -> tuple[NodeClock, ...] | None:
    """Offset of each node's clock from that of rank 0's node; None for one node, which has one clock."""
    if case.nnodes == 1:
        return None
    return tuple(sorted((clock for file in files if (clock := _clock(file))), key=lambda clock: clock.node))


def _clock(file: RankFile) -> NodeClock | None:
    offsets = {event.when: event for event in file.clock_offsets}
    start, end = offsets.get("start"), offsets.get("end")
    if start is None or file.node is None:
        return None
    drift_s = None if end is None else end.offset_s - start.offset_s
    return NodeClock(
        node=file.node,
        offset_s=round(start.offset_s + (drift_s or 0.0) / 2, _DIGITS),
        bound_s=round(max(start.bound_s, end.bound_s if end else 0.0) + abs(drift_s or 0.0) / 2, _DIGITS),
        drift_s=None if drift_s is None else round(drift_s, _DIGITS),
        wall_offset_s=round(start.wall_offset_s, _DIGITS),
    )


def clock_of(node: int, clocks: Sequence[NodeClock] | None, *, reference: int, needed_s: float) -> NodeClock:
    """Return the clock of a node, known to ``needed_s`` or better; ``reference`` is rank 0's node.

    Raises ValueError if it was not measured, or not precisely enough.
    """
    if node == reference:
        return NodeClock(node=node, offset_s=0.0, bound_s=0.0, drift_s=0.0, wall_offset_s=0.0)
    clock = next((clock for clock in clocks or () if clock.node == node), None)
    if clock is None or clock.drift_s is None:
        when = "" if clock is None else " at the end"
        raise ValueError(f"the clock of node {node} was not compared with that of rank 0's node{when}")
    if clock.bound_s > needed_s:
        raise ValueError(
            f"the clock of node {node} is known to {clock.bound_s:.3g} s only, and {needed_s:g} s are needed"
        )
    return clock


def failed_at_s(file: RankFile, files: Sequence[RankFile]) -> float | None:
    """When a rank failed, by the wall clock of rank 0's node if its offset is known: hosts' wall clocks may differ."""
    if file.error is None or file.error.time_unix_s is None:
        return None
    offsets = (
        other.clock_offsets[0].wall_offset_s for other in files if other.clock_offsets and other.node == file.node
    )
    return file.error.time_unix_s - next(offsets, 0.0)


def apart(case: Case, files: Sequence[RankFile], clocks: Sequence[NodeClock] | None) -> str | None:
    """Where ranks ran the same iteration at different times, though they wait for each other; None if nowhere.

    An iteration with an all-reduce cannot end on one rank before it has begun on all. Trainings that share a GPU wait
    for each other between turns only.
    """
    reduces = case.learns or case.workload == "all_reduce"
    if not reduces or case.trainings_per_gpu > 1:
        return None
    zeros_s = []  # of each rank's ``start_s``, on the monotonic clock of rank 0's node
    for file in files:
        try:
            clock = clock_of(file.node or 0, clocks, reference=files[0].node or 0, needed_s=math.inf)
        except ValueError:
            return None
        if file.clock is None:
            return None
        zeros_s.append(file.clock.zero_monotonic_s - clock.offset_s)
    slack_s = NEEDED_S + 2 * max((clock.bound_s for clock in clocks or ()), default=0.0)
    for row in range(min((len(file.iterations) for file in files), default=0)):
        begun, ended = [], []
        for file, zero_s in zip(files, zeros_s, strict=True):
            samples = file.iterations[row].samples
            start_s, time_s = samples.get("start_s"), samples.get("iteration_time_s")
            if start_s is None or time_s is None:
                return None
            begun.append((zero_s + start_s, file.rank))
            ended.append((zero_s + start_s + time_s, file.rank))
        (last_s, late), (first_s, early) = max(begun), min(ended)
        if last_s - first_s > slack_s:
            return (
                f"rank {early} ended iteration {row} {last_s - first_s:.3g} s before rank {late} began it: "
                "their samples share no window"
            )
    return None


# ---- NCCL's log ----


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


class Connection(NamedTuple):
    """One direction of one channel between two ranks."""

    source: int
    target: int
    channel: str
    kind: str  # without device numbers


@dataclass(kw_only=True)
class NcclLog:
    """The facts of the ranks' logs together."""

    version: str | None
    nnodes: int | None  # nodes that NCCL distinguishes, which NCCL_HOSTID changes
    nvls: bool
    connections: set[Connection] = field(default_factory=set)
    interfaces: set[str] = field(default_factory=set)
    link_layers: set[str] = field(default_factory=set)  # of InfiniBand verbs: IB, RoCE
    paths: set[str] = field(default_factory=set)  # of each graph, the worst between GPUs of a node: NVL, PIX, PXB, SYS
    unread_lines: int = 0


def read_log(text: str) -> NcclLog:
    """Read the lines about the network; skip all others."""
    version, nodes = _VERSION.search(text), _NODES.findall(text)
    log = NcclLog(
        version=version[1] if version else None,
        nnodes=max(map(int, nodes), default=None),
        nvls=_NVLS.search(text) is not None,
    )
    for line in text.splitlines():
        if match := _CHANNEL.search(line):
            channel, source, target, kind = match.groups()
            log.connections.add(Connection(int(source), int(target), channel, _NUMBER.sub("", kind)))
        elif _SPEAKS_OF_A_CHANNEL.search(line):
            log.unread_lines += 1
        elif match := _NETWORK.search(line):
            for device in _DEVICE.finditer(match["devices"].partition("; OOB")[0]):
                log.interfaces.add(device["name"])
                log.link_layers |= {device["layer"]} - {None}
        elif match := _PATTERN.search(line):
            log.paths.add(match["within"])
    return log


# ---- how the ranks exchanged data ----


NVLINK: Final = frozenset({"LOC", "NVL", "NVB", "C2C"})  # NCCL's names of paths between GPUs; all others cross PCIe
_SLACK_S: Final = 1.0  # a file system notes the time of a write late


def transport_of(record: RunRecord, files: Sequence[RankFile], logs: Mapping[int, str]) -> Transport | None:
    """Return the transport from ``logs``: NCCL's, by rank. None for one rank, or if neither library left a trace."""
    case = record.case
    if case.world_size == 1:
        return None
    if not logs:  # gloo
        interfaces = sorted({name for file in files if file.network for name in file.network.interfaces})
        if not interfaces:
            return None
        return Transport(
            library="gloo",
            interfaces=tuple(interfaces),
            within_node=("host_memory",) if case.nproc_per_node > 1 else (),
            between_nodes=_of_sockets(interfaces) if case.nnodes > 1 else (),
            emulated=_is_emulated(record, files, None),
        )
    log = read_log("\n".join(logs.values()))
    routes = _routes(log.connections, {file.rank: file.node for file in files})
    within, between = (
        tuple(sorted({word for route in routes if route.between_nodes is side for word in _interconnects(route, log)}))
        for side in (False, True)
    )
    return Transport(
        library="nccl",
        version=log.version,
        interfaces=tuple(sorted(log.interfaces)),
        routes=routes,
        within_node=within,
        between_nodes=between,
        emulated=_is_emulated(record, files, log.nnodes),
        nvls=log.nvls,
        unread_lines=log.unread_lines,
        logged_while_steady=_logged_in_window(record, files),
    )


def _routes(connections: Iterable[Connection], nodes: Mapping[int, int | None]) -> tuple[Route, ...]:
    groups: dict[tuple[str, bool], list[Connection]] = {}
    for connection in connections:
        between = nodes.get(connection.source) != nodes.get(connection.target)
        groups.setdefault((connection.kind, between), []).append(connection)
    return tuple(
        Route(
            kind=kind,
            between_nodes=between,
            pairs=len({(connection.source, connection.target) for connection in groups[kind, between]}),
            channels=len(groups[kind, between]),
        )
        for kind, between in sorted(groups)
    )


def _interconnects(route: Route, log: NcclLog) -> Iterator[Interconnect]:
    """What a route crosses; nothing if that is unknown."""
    transport, _, how = route.kind.partition("/")
    if transport == "P2P":
        if how.startswith("MNNVL") or (log.paths and log.paths <= NVLINK):
            yield "nvlink"
        elif log.paths:
            yield "pcie"
    elif transport in ("SHM", "direct shared memory"):
        yield "host_memory"
    elif how.startswith("Socket"):
        yield from _of_sockets(log.interfaces)
    elif how.startswith("IB"):
        words: dict[str, Interconnect] = {"IB": "infiniband", "RoCE": "roce"}
        yield from (word for layer, word in words.items() if layer in log.link_layers)


def _of_sockets(interfaces: Iterable[str]) -> tuple[Interconnect, ...]:
    """Interconnects of sockets: Ethernet, InfiniBand for its own interfaces, host memory for the loopback alone."""
    names = set(interfaces) - {"lo"}
    words: set[Interconnect] = {
        "infiniband" if name.startswith("ib") else "ethernet" for name in names - {UNKNOWN_INTERFACE}
    }
    return tuple(sorted(words)) if names else ("host_memory",)


def _is_emulated(record: RunRecord, files: Sequence[RankFile], nccl_nodes: int | None) -> bool | None:
    """Whether there are fewer machines than nodes, by our count or NCCL's."""
    machines = {file.start.machine if file.start else None for file in files}
    if None in machines or not machines:
        return None
    return len(machines) < max(record.case.nnodes, nccl_nodes or 1)


def _logged_in_window(record: RunRecord, files: Sequence[RankFile]) -> bool | None:
    """Whether NCCL logged in its window; by each rank's own clock, since their zeros are seconds apart."""
    if record.outcome != "completed":
        return None
    first, late = window(record).start, []
    for rank, file in zip(record.ranks, files, strict=True):
        written_s = file.network.nccl_log_written_s if file.network else None
        starts_s = rank.samples.get("start_s")
        start_s = starts_s[first] if starts_s else None
        if written_s is not None and start_s is not None:
            late.append(written_s > start_s + _SLACK_S)
    return any(late) if late else None
