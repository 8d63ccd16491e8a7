"""Clocks of nodes, and NCCL's log, which becomes the transport of a round.

The log's lines have the shapes of NCCL 2.5 to 2.28; hosts are made up.
"""

import queue
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from suite.records.network import Connection, clock_of, read_log
from suite.records.rank_file import nccl_log_path
from suite.schema.observations import UNKNOWN_INTERFACE, Route, Transport
from tasks.rank import machine
from tasks.rank.machine import clock_offset
from tests.fixtures.results.rank_events import Events, RankFiles, end, error, head, iterations, whole


@dataclass
class SlowStore:
    """Keys of two threads; what is asked for comes only after ``delay_s``."""

    delay_s: float
    keys: dict[str, queue.SimpleQueue[bytes]] = field(default_factory=lambda: defaultdict(queue.SimpleQueue))

    def set(self, key: str, value: str) -> None:
        self.keys[key].put(value.encode())

    def get(self, key: str) -> bytes:
        value = self.keys[key].get(timeout=10)
        time.sleep(self.delay_s)
        return value


def test_the_true_offset_lies_within_the_bound() -> None:
    """The second node's clocks are far from those of the first."""
    store, offsets = SlowStore(0.0005), list[dict[str, float] | None]()

    def clocks() -> tuple[float, float]:
        return time.perf_counter() - 70_000.0, time.time() + 2.5

    def second() -> None:
        offsets.append(clock_offset(store, "start", rank=4, first_ranks=(0, 4), clocks=clocks))

    thread = threading.Thread(target=second)
    thread.start()
    assert clock_offset(store, "start", rank=0, first_ranks=(0, 4)) is None
    thread.join(10)
    (offset,) = offsets
    assert offset is not None
    assert abs(offset["offset_s"] + 70_000.0) <= offset["bound_s"]
    assert offset["wall_offset_s"] == pytest.approx(2.5, abs=offset["bound_s"] + 0.001)
    assert offset["bound_s"] >= 0.0005  # half of two delays, and whatever a busy machine adds at best


def of_node(rank: int, node: int, *, zero_s: float, offsets: Sequence[dict[str, Any]] = ()) -> Events:
    """A rank of another node, whose clock reads ``zero_s`` where its samples count from."""
    first, *others = head(rank)
    events = iterations(3)
    for row, event in enumerate(events):
        event["samples"]["start_s"] = 0.5 * row
    clock = {"event": "clock", "zero_monotonic_s": zero_s}
    return [{**first, "local_rank": 0, "node": node}, *offsets, *others, clock, *events]


def offset(when: str, offset_s: float, bound_s: float = 0.001, wall_offset_s: float = 0.0) -> dict[str, Any]:
    event = {"event": "clock_offset", "when": when, "offset_s": offset_s, "bound_s": bound_s}
    return {**event, "wall_offset_s": wall_offset_s}


@pytest.fixture
def two_nodes(rank_files: RankFiles) -> RankFiles:
    rank_files.case = replace(rank_files.case, nnodes=2, nproc_per_node=1)
    return rank_files


def test_offsets_of_start_and_end_become_the_clock_of_a_node(two_nodes: RankFiles) -> None:
    two_nodes.rank(0, of_node(0, 1, zero_s=100.0) + end())
    measured = [offset("start", 50.0, 0.001), offset("end", 50.01, 0.002)]
    two_nodes.rank(1, of_node(1, 0, zero_s=150.005, offsets=measured) + end())
    record = two_nodes.collect()
    assert (record.outcome, record.reason) == ("completed", None)
    assert [rank.node for rank in record.ranks] == [1, 0]
    assert record.clocks is not None
    (clock,) = record.clocks
    assert (clock.node, clock.offset_s, clock.wall_offset_s) == (0, 50.005, 0.0)
    assert clock.drift_s == pytest.approx(0.01)
    assert clock.bound_s == pytest.approx(0.002 + 0.01 / 2)
    assert clock_of(0, record.clocks, reference=1, needed_s=0.1) == clock
    assert clock_of(1, record.clocks, reference=1, needed_s=0.1).offset_s == 0.0
    with pytest.raises(ValueError, match=r"node 0 is known to 0\.007 s only, and 0\.001 s are needed"):
        clock_of(0, record.clocks, reference=1, needed_s=0.001)
    with pytest.raises(ValueError, match="node 2 was not compared"):
        clock_of(2, record.clocks, reference=1, needed_s=0.1)


@pytest.mark.parametrize(("offset_s", "outcome"), [(50.0, "completed"), (52.0, "invalid")])
def test_iterations_of_one_number_must_share_a_window(two_nodes: RankFiles, offset_s: float, outcome: str) -> None:
    """The same two files: whether they fit is known by the offset alone."""
    two_nodes.rank(0, of_node(0, 0, zero_s=100.0) + end())
    measured = [offset("start", offset_s), offset("end", offset_s)]
    two_nodes.rank(1, of_node(1, 1, zero_s=150.0, offsets=measured) + end())
    record = two_nodes.collect()
    assert record.outcome == outcome
    if outcome == "invalid":
        assert record.reason == "rank 1 ended iteration 0 1.5 s before rank 0 began it: their samples share no window"


def test_the_first_failure_is_found_though_a_wall_clock_is_wrong(two_nodes: RankFiles) -> None:
    """Node 1 is an hour ahead: its error, first in truth, has the later stamp."""
    two_nodes.rank(0, of_node(0, 0, zero_s=100.0) + error("second", time_unix_s=20.0))
    ahead = [offset("start", 50.0, wall_offset_s=3600.0)]
    two_nodes.rank(1, of_node(1, 1, zero_s=150.0, offsets=ahead) + error("first", time_unix_s=3610.0))
    assert two_nodes.collect(exit_code=1).reason == "rank 1: RuntimeError: first"


# ---- transport ----


NVLINK_LOG = """\
gpu7:311:311 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
gpu7:311:402 [0] NCCL INFO NET/IB : No device found.
gpu7:311:402 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.7<0>
gpu7:311:402 [0] NCCL INFO Using network Socket
gpu7:311:402 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 24)
gpu7:311:402 [0] NCCL INFO comm 0x55d0c0ffee00 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0
gpu7:311:402 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 2, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1
gpu7:311:402 [0] NCCL INFO  0 : GPU/0-3000 GPU/0-4000
gpu7:311:402 [0] NCCL INFO Channel 00/02 :    0   1
gpu7:311:402 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
gpu7:311:402 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
gpu7:311:402 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
gpu7:311:402 [0] NCCL INFO Connected NVLS tree
"""
SOCKET_LOG = """\
gpu7:52:52 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
gpu7:52:60 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.7<0> [1]eth1:10.2.0.7<0>
gpu7:52:60 [0] NCCL INFO comm 0x7fad00 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0
gpu7:52:60 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
gpu7:52:60 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/Socket/1
gpu7:52:60 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Channel 03/0 : 0[0] -> 1[1] via P2P/MNNVL/read", "P2P/MNNVL/read"),
        ("Channel 03/1 : 0[2a000] -> 1[51000] via P2P/IPC/read", "P2P/IPC/read"),
        ("Channel 03/0 : 0[0] -> 1[1] via SHM/direct/direct", "SHM/direct/direct"),
        ("Channel 03/0 : 0[0] -> 1[0] [send] via NET/IB/3/GDRDMA", "NET/IB/GDRDMA"),
        ("Channel 03/0 : 0[0] -> 1[0] [send] via NET/IB/3(5)/GDRDMA", "NET/IB/GDRDMA"),
        ("Channel 03/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/2/GDRDMA", "NET/AWS Libfabric/GDRDMA"),
        ("Channel 03/0 : 0[0] -> 1[0] [send] via NET/Socket/0 comm 0x55 nRanks 02", "NET/Socket"),
    ],
)
def test_every_known_shape_of_a_channel(text: str, kind: str) -> None:
    log = read_log(f"host:1:2 [0] NCCL INFO {text}\n")
    assert (log.connections, log.unread_lines) == ({Connection(0, 1, text.split()[1], kind)}, 0)


def started(rank: int, *, node: int, machine: str | None = "a" * 12) -> Events:
    first, *others = head(rank)
    return [{**first, "node": node, "machine": machine, "local_rank": 0}, *others]


def transport(files: RankFiles, log: str, *, machines: str = "aa", nnodes: int = 1) -> Transport:
    """Transport of two ranks, of which rank 0 has NCCL's log; a letter names each rank's machine."""
    files.case = replace(files.case, nnodes=nnodes, nproc_per_node=2 // nnodes)
    for rank, letter in enumerate(machines):
        machine = None if letter == "?" else letter * 12
        files.rank(rank, started(rank, node=rank if nnodes == 2 else 0, machine=machine) + iterations(3) + end())
    write_log(files, 0, log)
    record = files.collect()
    assert (record.outcome, record.reason) == ("completed", None)
    assert record.transport is not None
    return record.transport


def write_log(files: RankFiles, rank: int, text: str) -> None:
    path = nccl_log_path(files.run_dir, rank)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_one_node_over_nvlink_or_pcie(rank_files: RankFiles) -> None:
    write_log(rank_files, 1, NVLINK_LOG.replace("0[0] -> 1[1]", "1[1] -> 0[0]"))
    by_nvlink = transport(rank_files, NVLINK_LOG)
    assert by_nvlink == Transport(
        library="nccl",
        version="2.28.9",
        interfaces=("eth0",),  # looked for, and not used
        routes=(Route(kind="P2P/CUMEM/read", between_nodes=False, pairs=2, channels=4),),
        within_node=("nvlink",),
        emulated=False,
        nvls=True,
    )
    assert by_nvlink.interconnect == "nvlink"
    write_log(rank_files, 1, "")
    assert transport(rank_files, NVLINK_LOG.replace("type NVL", "type SYS")).within_node == ("pcie",)


def test_two_nodes_on_one_machine_are_emulated(rank_files: RankFiles) -> None:
    two = transport(rank_files, SOCKET_LOG, nnodes=2)
    assert two.routes == (Route(kind="NET/Socket", between_nodes=True, pairs=2, channels=3),)
    assert (two.interfaces, two.between_nodes) == (("eth0", "eth1"), ("ethernet",))
    assert (two.emulated, two.interconnect) == (True, "emulated (ethernet)")
    assert transport(rank_files, SOCKET_LOG).emulated  # one node that NCCL was told is two


@pytest.mark.parametrize(
    ("machines", "layer", "emulated", "word"), [("ab", "IB", False, "infiniband"), ("a?", "RoCE", None, "roce")]
)
def test_two_machines_over_verbs(
    rank_files: RankFiles, machines: str, layer: str, emulated: bool | None, word: str
) -> None:
    text = SOCKET_LOG.replace("NET/Socket/", "NET/IB/").replace(
        "NET/Socket : Using [0]eth0:10.1.0.7<0> [1]eth1:10.2.0.7<0>",
        f"NET/IB : Using [0]mlx5_0:1/{layer} [1]mlx5_4:1/{layer} [RO]; OOB eth0:10.1.0.7<0>",
    )
    verbs = transport(rank_files, text, machines=machines, nnodes=2)
    assert (verbs.interfaces, verbs.emulated, verbs.interconnect) == (("mlx5_0", "mlx5_4"), emulated, word)


@pytest.mark.parametrize(("written_s", "late"), [(0.4, False), (900.0, True)])
@pytest.mark.parametrize("ahead_s", [(0.0, 20.0), (20.0, 0.0)])  # whose imports were done earlier
def test_a_log_that_grows_in_steady_iterations_is_flagged(
    rank_files: RankFiles, written_s: float, late: bool, ahead_s: tuple[float, float]
) -> None:
    for rank in (0, 1):
        events = iterations(3)
        for row, event in enumerate(events):
            event["samples"] = {**event["samples"], "start_s": ahead_s[rank] + 0.5 * row}
        network = {"event": "network", "nccl_log_written_s": ahead_s[rank] + written_s}
        rank_files.rank(rank, [*started(rank, node=0), network, *events, *end()])
        write_log(rank_files, rank, NVLINK_LOG)
    transport = rank_files.collect().transport
    assert transport is not None
    assert transport.logged_while_steady is late


def test_a_log_that_cannot_be_read_costs_no_round(rank_files: RankFiles) -> None:
    for rank in range(2):
        rank_files.rank(rank, whole(rank))
        nccl_log_path(rank_files.run_dir, rank).mkdir(parents=True)
    record = rank_files.collect()
    assert (record.outcome, record.transport) == ("completed", None)


# ---- the rank's part ----


def test_bound_interfaces_are_those_of_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "lo" not in machine.bound_interfaces(port), "a port that listens is no connection"
        with socket.create_connection(("127.0.0.1", port)), server.accept()[0]:
            assert "lo" in machine.bound_interfaces(1)
            assert "lo" not in machine.bound_interfaces(port), "the store's connection does not count"


def test_an_address_of_no_known_interface_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = [
        SimpleNamespace(status="ESTABLISHED", laddr=SimpleNamespace(ip=ip, port=1), raddr=SimpleNamespace(port=2))
        for ip in ("2001:db8::5", "198.51.100.9", "::ffff:127.0.0.1", "fe80::1")
    ]
    monkeypatch.setattr(psutil.Process, "net_connections", lambda *_: connections)
    addresses = {"eth7": [SimpleNamespace(address="2001:db8::5"), SimpleNamespace(address="fe80::1%eth7")]}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: addresses)
    assert machine.bound_interfaces(3) == ["eth7", "lo", UNKNOWN_INTERFACE]
    addresses.clear()
    assert machine.bound_interfaces(3) == ["lo", UNKNOWN_INTERFACE]


def test_what_the_user_asked_of_nccl_is_kept(tmp_path: Path) -> None:
    assert machine.nccl_log_variables(tmp_path, 3, {"NCCL_DEBUG": "WARN"}) == {}
    (tmp_path / "100%").mkdir()
    asked = machine.nccl_log_variables(tmp_path / "100%", 3, {})
    assert asked["NCCL_DEBUG_FILE"].endswith("/100%%/logs/nccl-rank-3.log")
    assert machine.nccl_log_path(tmp_path, 3) == nccl_log_path(tmp_path, 3)
    assert "COLL" not in asked["NCCL_DEBUG_SUBSYS"].split(","), "a line for every collective would cost time"
