"""Whether physics ran from a CUDA graph: stand-ins for Isaac Lab's manager, as no GPU is here, and its real names."""

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from suite.schema.record import CheckResult
from tasks.rank import cuda_graph
from tests.fixtures.runs.worker_probes import Hand

POOL_OFF: Mapping[str, Any] = {
    "cuda_memory_pool_supported": True,
    "cuda_memory_pool_enabled": False,
    "cuda_driver_version": "12.2",
}


def judged(*, asked: bool = True, **manager: Any) -> CheckResult:
    sim = SimpleNamespace(physics_manager=SimpleNamespace(**manager))
    check = cuda_graph.check(cuda_graph.read(sim, SimpleNamespace(use_cuda_graph=asked)), POOL_OFF)
    assert check is not None
    return check


def test_a_captured_graph_is_fine() -> None:
    check = judged(_graph=object(), _graph_capture_pending=False)
    assert (check.name, check.verdict, check.fault) == ("cuda_graph", "ok", None)


def test_a_graph_that_was_asked_for_and_is_not_there_is_a_failure_with_what_warp_says() -> None:
    check = judged(_graph=None, _graph_capture_pending=False)
    assert (check.verdict, check.fault) == ("failure", "cuda_graph_not_in_use")
    assert check.found.endswith("memory pool supported: True, enabled: False; driver of CUDA 12.2")


@pytest.mark.parametrize(
    ("asked", "manager", "words"),
    [
        (False, {"_graph": None}, "asks for no CUDA graph"),
        (True, {"_graph": None, "_graph_capture_pending": True}, "no physics step"),
        (True, {"_graph": None, "_supports_cuda_graph_capture": lambda: False}, "this physics solver"),
        (True, {}, "does not show"),
    ],
)
def test_no_graph_for_a_reason_is_no_fault(*, asked: bool, manager: dict[str, Any], words: str) -> None:
    check = judged(asked=asked, **manager)
    assert (check.verdict, check.fault) == ("not_checked", None)
    assert words in check.found


def test_warp_is_asked_of_the_ranks_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(
        get_cuda_driver_version=lambda: (13, 0),
        is_mempool_supported={"cuda:1": 1}.__getitem__,
        is_mempool_enabled={"cuda:1": 0}.__getitem__,
        get_mempool_release_threshold={"cuda:1": 2**64 - 1}.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "warp", fake)
    kept = {"cuda_memory_pool_kept_bytes": 2**64 - 1}
    assert cuda_graph.warp_settings("cuda:1") == {**POOL_OFF, **kept, "cuda_driver_version": "13.0"}
    del fake.get_cuda_driver_version, fake.get_mempool_release_threshold  # an older Warp
    without = cuda_graph.warp_settings("cuda:1")
    assert (without["cuda_driver_version"], without["cuda_memory_pool_kept_bytes"]) == (None, None)
    assert set(cuda_graph.warp_settings("cpu").values()) == {None}


@pytest.mark.worker
def test_isaac_lab_keeps_its_graph_where_it_is_looked_for(hand: Hand) -> None:
    """A CPU run requests the graph and gets none."""
    assert hand.found["cuda_graph"] == {
        "names": ["_graph", "_graph_capture_pending", "_supports_cuda_graph_capture"],
        "state": {"is_asked": True, "is_captured": False, "is_pending": False, "is_supported": True},
    }
