"""torchrun's arguments on each of several nodes. Real nodes run it in tests/suite/launch/slurm/test_slurm_bench.py."""

import socket

import pytest

from suite.launch.nodes import node
from suite.launch.nodes.node import HEAD, NODE_RANK, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT, own_address

ENVIRON = {HEAD: "gpu01", PEER: "gpu02", RENDEZVOUS_ID: "12", RENDEZVOUS_PORT: "20012"}
SAME = ["--nnodes=2", "-m", "tasks.worker", "/out"]


@pytest.mark.parametrize(
    ("rank", "endpoint", "is_host"), [("0", "10.0.0.1:20012", "true"), ("1", "gpu01:20012", "false")]
)
def test_the_head_hosts_the_rendezvous_under_its_own_address(rank: str, endpoint: str, is_host: str) -> None:
    address = f"10.0.0.{int(rank) + 1}"
    arguments = node.torchrun_arguments("/logs", SAME, {**ENVIRON, NODE_RANK: rank}, address)
    assert f"--rdzv-endpoint={endpoint}" in arguments
    (settings,) = (part for part in arguments if part.startswith("--rdzv-conf="))
    assert f"is_host={is_host}," in settings
    assert "join_timeout=180" in settings
    assert f"--local-addr={address}" in arguments
    assert f"--log-dir=/logs/node-{rank}" in arguments
    assert arguments[-len(SAME) :] == SAME


def test_a_name_that_is_not_known_yet_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod of that name may not have started yet; in the end the resolver's own error is raised."""
    monkeypatch.setattr(node, "JOIN_TIMEOUT_S", 0.5)
    with pytest.raises(socket.gaierror):
        node.address_towards("no-such-pod.invalid")


def test_a_name_without_an_ipv4_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "JOIN_TIMEOUT_S", 0.0)
    for name, value in {**ENVIRON, HEAD: "fd00::1", NODE_RANK: "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="node 1: fd00::1"):
        node.main(["node", "/logs"])


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, "127.0.0.1"),  # the only node
        ({HEAD: "127.0.0.1", PEER: "192.0.2.1", NODE_RANK: "0"}, "127.0.0.1"),  # the way to the peer is another
        ({HEAD: "127.0.0.1", PEER: "192.0.2.1", NODE_RANK: "1"}, "127.0.0.1"),
    ],
)
def test_a_node_listens_where_the_others_were_told(environ: dict[str, str], address: str) -> None:
    assert own_address(environ) == address


def test_the_interface_of_an_address() -> None:
    assert node.address_towards("127.0.0.1") == "127.0.0.1"
    assert node.interface_of("127.0.0.1") == "lo"
    assert node.interface_of("192.0.2.1") is None  # of no machine
