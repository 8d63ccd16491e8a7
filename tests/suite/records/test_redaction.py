"""What a stored message keeps to itself: folders, users and the name of this machine."""

import socket
from pathlib import Path

import pytest

from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.records.redaction import public
from tests.fixtures.results.rank_events import RankFiles, error, head, iterations


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (f"{ROOT}/suite/a.py, line 3", "LABSCALE/suite/a.py, line 3"),
        (f"no {cache_root()}/worker-1/bin/python", "no CACHE/worker-1/bin/python"),
        (f"{Path.home()}: full", "HOME: full"),
        (f"{Path.home()}s-other/x", f"{Path.home()}s-other/x"),
        ("File /Users/alice.smith/x.py, /Users/bob", "File /Users/USER/x.py, /Users/USER"),
        ("a reward of 3.5 at /dev/shm", "a reward of 3.5 at /dev/shm"),
    ],
)
def test_folders_and_users_have_other_names(text: str, stored: str) -> None:
    assert public(text) == stored


def test_this_host_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-node-17.corp.example")
    text = "[gpu-node-17.corp.example:29500] refused gpu-node-17, not gpu-node-171 nor my-gpu-node-17"
    assert public(text) == "[HOST:29500] refused HOST, not gpu-node-171 nor my-gpu-node-17"


NODES = ("n1", "robot@gpu02.corp.example", "10.0.0.7")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("FAILED, and n1 does not answer", "FAILED, and node 0 does not answer"),
        ("(n1.corp.example, 29500)", "(node 0, 29500)"),
        ("n1. n12, my-n1", "node 0. n12, my-n1"),
        ("ssh: robot@gpu02.corp.example: refused by gpu02", "ssh: node 1: refused by node 1"),
        ("[10.0.0.7]:29500 closed after 10 s of 10.0.0.70", "[node 2]:29500 closed after 10 s of 10.0.0.70"),
    ],
)
def test_nodes_have_numbers(text: str, stored: str) -> None:
    assert public(text, nodes=NODES) == stored


def test_a_home_of_a_container_may_be_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert public("open /opt/x: denied") == "open /opt/x: denied"


def test_a_lost_round_is_stored_without_the_names_of_its_nodes(rank_files: RankFiles) -> None:
    rank_files.rank(0, [*head(0), *iterations(1), *error("no answer of gpu02:29500", kind="DistNetworkError")])
    record = rank_files.collect(exit_code=1, ended_by="lost", why="FAILED, and gpu02 is gone", nodes=("gpu01", "gpu02"))
    assert record.ranks[0].error == "DistNetworkError: no answer of node 1:29500"
    assert record.reason is not None
    assert record.reason.startswith("FAILED, and node 1 is gone; rank 0: ")
    assert "gpu02" not in record.reason
