"""How the ranks of a round exchanged data, from NCCL's logs or from the interfaces of gloo's sockets. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from suite.records.network.nccl_log import Connection, NcclLog, read_log
from suite.records.rank_file import RankFile
from suite.schema.record import RunRecord
from suite.schema.transport import UNKNOWN_INTERFACE, Interconnect, Route, Transport
from suite.statistics.reduce import window

NVLINK: Final = frozenset({"LOC", "NVL", "NVB", "C2C"})  # NCCL's names of paths between GPUs; all others cross PCIe
_SLACK_S: Final = 1.0  # a file system notes the time of a write late


def transport_of(record: RunRecord, files: Sequence[RankFile], logs: Mapping[int, str]) -> Transport | None:
    """Return the transport from ``logs``: NCCL's, by rank. None for one rank, or if neither library left a trace."""
    if record.case.world_size == 1:
        return None
    nodes = {file.rank: file.start.node if file.start else None for file in files}
    if logs:
        return _of_nccl(record, files, [read_log(text) for text in logs.values()], nodes)
    interfaces = sorted({name for file in files if file.network for name in file.network.interfaces})
    if not interfaces:
        return None
    return Transport(
        library="gloo",
        interfaces=tuple(interfaces),
        within_node=("host_memory",) if record.case.nproc_per_node > 1 else (),
        between_nodes=_of_sockets(interfaces) if record.case.nnodes > 1 else (),
        emulated=_is_emulated(record, files, None),
    )


def _of_nccl(
    record: RunRecord, files: Sequence[RankFile], logs: Sequence[NcclLog], nodes: Mapping[int, int | None]
) -> Transport:
    connections = frozenset[Connection]().union(*(log.connections for log in logs))
    routes = _routes(connections, nodes)
    interfaces = tuple(sorted(set().union(*(log.interfaces for log in logs))))
    return Transport(
        library="nccl",
        version=next((log.version for log in logs if log.version), None),
        interfaces=interfaces,
        routes=routes,
        within_node=_named(routes, logs, interfaces, between_nodes=False),
        between_nodes=_named(routes, logs, interfaces, between_nodes=True),
        emulated=_is_emulated(record, files, max((log.nnodes for log in logs if log.nnodes), default=None)),
        nvls=any(log.nvls for log in logs),
        unread_lines=sum(log.unread_lines for log in logs),
        logged_while_steady=_logged_in_window(record, files),
    )


def _routes(connections: Iterable[Connection], nodes: Mapping[int, int | None]) -> tuple[Route, ...]:
    found: Counter[tuple[str, bool]] = Counter()
    pairs: dict[tuple[str, bool], set[tuple[int, int]]] = {}
    for connection in connections:
        key = connection.kind, nodes.get(connection.source) != nodes.get(connection.target)
        found[key] += 1
        pairs.setdefault(key, set()).add((connection.source, connection.target))
    return tuple(
        Route(kind=kind, between_nodes=between, pairs=len(pairs[kind, between]), channels=found[kind, between])
        for kind, between in sorted(found)
    )


def _named(
    routes: Sequence[Route], logs: Sequence[NcclLog], interfaces: Sequence[str], *, between_nodes: bool
) -> tuple[Interconnect, ...]:
    """The interconnects that the routes cross; unknown ones are left out."""
    named = {name for route in routes if route.between_nodes is between_nodes for name in _of(route, logs, interfaces)}
    return tuple(sorted(named))


def _of(route: Route, logs: Sequence[NcclLog], interfaces: Sequence[str]) -> Iterator[Interconnect]:
    transport, _, how = route.kind.partition("/")
    if transport == "P2P":
        paths = set().union(*(log.paths for log in logs))
        if how.startswith("MNNVL") or (paths and paths <= NVLINK):
            yield "nvlink"
        elif paths:
            yield "pcie"
    elif transport in ("SHM", "direct shared memory"):
        yield "host_memory"
    elif how.startswith("Socket"):
        yield from _of_sockets(interfaces)
    elif how.startswith("IB"):
        layers = set().union(*(log.link_layers for log in logs))
        words: dict[str, Interconnect] = {"IB": "infiniband", "RoCE": "roce"}
        yield from (word for layer, word in words.items() if layer in layers)


def _of_sockets(interfaces: Iterable[str]) -> tuple[Interconnect, ...]:
    """Interconnects of sockets: Ethernet, InfiniBand for its own interfaces, host memory for the loopback alone."""
    names = set(interfaces) - {"lo"}
    found: set[Interconnect] = {
        "infiniband" if name.startswith("ib") else "ethernet" for name in names - {UNKNOWN_INTERFACE}
    }
    return tuple(sorted(found)) if names else ("host_memory",)


def _is_emulated(record: RunRecord, files: Sequence[RankFile], nccl_nodes: int | None) -> bool | None:
    """Whether there are fewer machines than nodes, by our count or NCCL's."""
    machines = {file.start.machine if file.start else None for file in files}
    if None in machines or not machines:
        return None
    return len(machines) < max(record.case.nnodes, nccl_nodes or 1)


def _logged_in_window(record: RunRecord, files: Sequence[RankFile]) -> bool | None:
    """Whether NCCL logged in its window; by each rank's own clock, since their zeros are seconds apart."""
    written = {
        file.rank: file.network.nccl_log_written_s
        for file in files
        if file.network and file.network.nccl_log_written_s is not None
    }
    if record.outcome != "completed" or not written:
        return None
    try:
        counted = window(record)
    except ValueError:  # too short to have a window
        return None
    late = [
        written[rank.rank] > starts_s[0] + _SLACK_S
        for rank in record.ranks
        if rank.rank in written
        and (starts_s := rank.samples.get("start_s", ())[counted.start : counted.stop])
        and starts_s[0] is not None
    ]
    return any(late) if late else None
