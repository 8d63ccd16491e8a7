"""Whether physics ran from a CUDA graph, by stand-ins for Isaac Lab's, and whether MuJoCo Warp dropped contacts."""

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from suite.schema.record import OVERFLOW_CHECK
from tasks.checks import physics

POOL_OFF: Mapping[str, Any] = {
    "cuda_memory_pool_supported": True,
    "cuda_memory_pool_enabled": False,
    "cuda_driver_version": "12.2",
}


@pytest.mark.parametrize(
    ("asked", "manager", "verdict", "words"),
    [
        (True, {"_graph": object(), "_graph_capture_pending": False}, "ok", "from a captured CUDA graph"),
        (True, {"_graph": None, "_graph_capture_pending": False}, "failure", "enabled: False; driver of CUDA 12.2"),
        (False, {"_graph": None}, "not_checked", "asks for no CUDA graph"),
        (True, {"_graph": None, "_graph_capture_pending": True}, "not_checked", "no physics step"),
        (True, {"_graph": None, "_supports_cuda_graph_capture": lambda: False}, "not_checked", "this physics solver"),
        (True, {}, "not_checked", "does not show"),
    ],
)
def test_a_graph_that_was_asked_for_and_is_not_there_for_no_reason_is_a_failure(
    *, asked: bool, manager: dict[str, Any], verdict: str, words: str
) -> None:
    sim = SimpleNamespace(physics_manager=SimpleNamespace(**manager))
    check = physics.check_graph(physics.read_graph(sim, SimpleNamespace(use_cuda_graph=asked)), POOL_OFF)
    assert check is not None
    assert (check.name, check.verdict) == ("cuda_graph", verdict)
    assert check.fault == ("cuda_graph_not_in_use" if verdict == "failure" else None)
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
    assert physics.warp_settings("cuda:1") == {**POOL_OFF, **kept, "cuda_driver_version": "13.0"}
    del fake.get_cuda_driver_version, fake.get_mempool_release_threshold  # an older Warp
    without = physics.warp_settings("cuda:1")
    assert (without["cuda_driver_version"], without["cuda_memory_pool_kept_bytes"]) == (None, None)
    assert set(physics.warp_settings("cpu").values()) == {None}


@pytest.mark.worker
def test_isaac_lab_keeps_its_graph_where_it_is_looked_for(hand: dict[str, Any]) -> None:
    """A CPU run requests the graph and gets none."""
    assert hand["cuda_graph"] == {
        "names": ["_graph", "_graph_capture_pending", "_supports_cuda_graph_capture"],
        "state": {"is_asked": True, "is_captured": False, "is_pending": False, "is_supported": True},
    }


@pytest.mark.worker
def test_buffers_that_are_too_small_are_found(hand: dict[str, Any]) -> None:
    """A task as it ships drops nothing: ``tests.tasks.libraries.test_controls``."""
    check = hand["dropped"]
    assert (check["name"], check["verdict"]) == (OVERFLOW_CHECK, "failure")
    assert check["fault"] == "contacts_or_constraints_dropped"
    for words in (
        "NEFC (njmax) in 4 of 4 worlds",
        "PHASE (nconmax) in 4 of 4 worlds",
        "increase njmax and nconmax",
    ):
        assert words in check["found"]


FLAGS: Final = {1: "NEFC", 8: "NARROWPHASE", 256: "EPA_HORIZON", 512: "ITERATIONS", 1024: "LS_ITERATIONS"}


@pytest.mark.parametrize(
    ("iterations", "verdict", "fault", "found"),
    [
        ([[0, 0], [0, 0]], "ok", None, ("2 worlds",)),
        ([[512, 0], [1536, 0]], "warning", physics.LIMIT, ("ITERATIONS in 1 of 2", "LS_ITERATIONS in 1 of 2")),
        # a reset clears what a world noted
        ([[512, 512], [9, 0], [0, 1], [0, 0]], "failure", physics.DROPPED,
         ("(njmax) in 2 of 2", "(nconmax) in 1 of 2", "iteration 1 on", "increase njmax and nconmax")),
        ([[0, 256]], "failure", physics.DROPPED, ("EPA_HORIZON in 1 of 2", "iteration 0 on")),
    ],
)  # fmt: skip
def test_what_worlds_note_in_training_is_judged_after_it(
    iterations: list[list[int]], verdict: str, fault: str | None, found: tuple[str, ...]
) -> None:
    words = np.array([0, 0])
    overflow = physics.Overflow(words, FLAGS)
    for noted in iterations:
        words[:] = noted
        overflow.collect()
    check = overflow.check()
    assert (check.verdict, check.fault) == (verdict, fault)
    assert all(part in check.found for part in found), check.found
