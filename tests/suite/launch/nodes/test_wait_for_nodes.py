"""Nodes that come one after another wait for each other, on real sockets of this machine."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from suite.errors import SchedulerError
from suite.launch.nodes import wait_for_nodes as meeting
from suite.launch.nodes.node import HEAD, NODE_RANK, RENDEZVOUS_PORT
from tests.fixtures.machines.free_ports import rendezvous_port

Node = Callable[..., Future[None]]


@pytest.fixture
def port() -> int:
    """The rendezvous' port; the meeting uses the next one."""
    return rendezvous_port()


@pytest.fixture
def node(port: int) -> Node:
    pool = ThreadPoolExecutor(4)

    def start(rank: int, *, nnodes: int = 3, within_s: float = 20.0) -> Future[None]:
        environ = {HEAD: "localhost", NODE_RANK: str(rank), RENDEZVOUS_PORT: str(port)}
        return pool.submit(meeting.meet, environ, nnodes=nnodes, within_s=within_s)

    return start


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_nobody_goes_on_before_all_are_there(node: Node, order: tuple[int, ...]) -> None:
    first, second = node(order[0]), node(order[1])
    time.sleep(0.5)
    assert not first.done()
    assert not second.done()
    for future in (first, second, node(order[2])):
        future.result(10)
    node(0, nnodes=1).result(5)  # has nobody to wait for


def test_the_missing_are_named(node: Node) -> None:
    head, other = node(0, within_s=1.0), node(2, within_s=1.0)
    with pytest.raises(SchedulerError, match="node 1 of 3"):
        head.result(10)
    with pytest.raises(SchedulerError, match="node 0 of 3"):
        other.result(10)


@pytest.mark.parametrize("line", [b"", b"GET / HTTP/1.1\r\n", b"7\n", b"0\n"])
def test_what_is_no_node_is_not_taken_for_one(node: Node, port: int, line: bytes) -> None:
    head = node(0, nnodes=2, within_s=20.0)
    deadline_s = time.monotonic() + 5
    while True:
        try:
            connection = socket.create_connection(("localhost", port + 1), timeout=5)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline_s
    with connection:
        connection.sendall(line)
    assert not head.done()
    node(1, nnodes=2).result(10)
    head.result(10)


def test_a_port_in_use_is_named(node: Node, port: int) -> None:
    with socket.create_server(("", port + 1)), pytest.raises(SchedulerError, match=str(port + 1)):
        node(0).result(10)
