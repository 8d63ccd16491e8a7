"""What a rank writes of its GPU and the others. Isaac Lab's manager, Warp and the driver are stand-ins."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.records.rank_file import rank_path, read_rank_file
from tasks.checks import gpu, other_gpus
from tasks.checks.other_gpus import OnGpu
from tasks.rank.rank_log import RankLog

ON_BOTH = tuple(OnGpu(index=index, has_context=True, is_listed=True, memory_gb=0.5) for index in range(2))


@pytest.fixture
def warp(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(is_mempool_supported=lambda _: 1, is_mempool_enabled=lambda _: 0)
    monkeypatch.setitem(sys.modules, "warp", fake)


def look(folder: Path, device: str, graph: object) -> tuple[dict[str, str], dict[str, Any]]:
    """Verdict by name of check, and the settings that were written."""
    env = SimpleNamespace(sim=SimpleNamespace(physics_manager=SimpleNamespace(_graph=graph)))
    env_cfg = SimpleNamespace(sim=SimpleNamespace(physics=SimpleNamespace(use_cuda_graph=True)))
    log = RankLog(folder, 0)
    checks = gpu.look(device, own_gpu=0, env=env, env_cfg=env_cfg, log=log)
    log._stream.close()
    return {check.name: check.verdict for check in checks}, read_rank_file(0, rank_path(folder, 0)).settings


@pytest.mark.usefixtures("warp")
@pytest.mark.parametrize(("graph", "verdict"), [(object(), "ok"), (None, "failure")])
def test_a_rank_on_a_gpu_writes_and_judges(
    graph: object, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_gpus, "read", lambda: ON_BOTH)
    found, settings = look(tmp_path, "cuda:0", graph)
    assert found == {"cuda_graph": verdict, "memory_on_other_gpus": "warning"}
    assert settings == {"cuda_graph": graph is not None}


def test_on_a_cpu_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    assert look(tmp_path, "cpu", None) == ({}, {"cuda_graph": None})
    (line,) = rank_path(tmp_path, 0).read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["event"] == "settings"  # said to be unknown, not left out
