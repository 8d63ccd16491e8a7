"""NCCL's check. No GPU is here: the probe runs for real as far as it gets, and fake workers stand in for the rest.

A fake worker is a shell script in place of the worker's Python; ``$3`` is the file that the probe's answer belongs in.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from suite.env_check.gpu import nccl
from suite.env_check.gpu.nccl import NcclFacts, judge_nccl_all_reduce
from suite.install.worker import Worker
from tasks import nccl_probe

RESULT: dict[str, Any] = {
    "torch": "2.11.0+cu130",
    "cuda": "13.0",
    "nccl": "2.28.9",
    "gpus": ["NVIDIA H200"] * 2,
    "peer_access": [[True, True], [True, True]],
    "is_sum_right": True,
    "message_bytes": 2**28,
    "times_s": [0.001, 0.0011],
    "bus_bandwidth_gb_s": 255.7,
}


def fake_worker(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def run_fake(folder: Path, script: str, timeout_s: float = 20.0) -> NcclFacts:
    return nccl.read_nccl(fake_worker(folder, script), environ=os.environ, timeout_s=timeout_s)


def answering(folder: Path, answer: str, exit_code: int = 0) -> NcclFacts:
    return run_fake(folder, f"cat > \"$3\" <<'END'\n{answer}\nEND\nexit {exit_code}")


def test_a_right_sum_over_all_gpus(tmp_path: Path) -> None:
    check = judge_nccl_all_reduce(answering(tmp_path, json.dumps(RESULT)), num_gpus=2)
    assert check.verdict == "ok"
    assert "255.7 GB/s" in check.found


@pytest.mark.parametrize(
    ("changes", "verdict", "fault", "word"),
    [
        ({"is_sum_right": False}, "failure", "nccl_wrong_sum", "Xid"),
        ({"peer_access": [[True, False], [True, True]]}, "warning", "no_peer_access", "nvidia-smi topo"),
        ({"gpus": ["NVIDIA H200"]}, "failure", "nccl_gpus_missing", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_what_the_probe_measured_may_be_a_fault(
    changes: dict[str, Any], verdict: str, fault: str, word: str, tmp_path: Path
) -> None:
    check = judge_nccl_all_reduce(answering(tmp_path, json.dumps(RESULT | changes)), num_gpus=2)
    assert (check.verdict, check.fault) == (verdict, fault)
    assert word in (check.repair or "")


@pytest.mark.parametrize("fault", nccl_probe.ERRORS)
def test_what_the_probe_says_is_the_fault(fault: str, tmp_path: Path) -> None:
    answer = json.dumps({"error": fault, "message": "this is why"})
    check = judge_nccl_all_reduce(answering(tmp_path, answer, exit_code=1), num_gpus=2)
    assert (check.verdict, check.fault, check.found) == ("failure", fault, "this is why")
    assert check.repair


def test_a_crash_is_told_with_its_last_words(tmp_path: Path) -> None:
    script = "echo 'node1:77:99 NCCL WARN Cuda failure 999'; echo 'Extension modules: numpy' >&2; kill -ABRT $$"
    check = judge_nccl_all_reduce(run_fake(tmp_path, script), num_gpus=2)
    assert (check.verdict, check.fault) == ("failure", "nccl_crashed")
    assert "NCCL WARN Cuda failure 999" in check.found
    assert "Extension modules" in check.evidence.output


def test_a_hang_ends_in_time_with_all_its_processes(tmp_path: Path) -> None:
    script = f"sleep 3600 & echo $! > {tmp_path}/child; echo 'waiting for rank 1' >&2; wait"
    check = judge_nccl_all_reduce(run_fake(tmp_path, script, timeout_s=1.0), num_gpus=2)
    assert (check.verdict, check.fault) == ("failure", "nccl_hung")
    assert "waiting for rank 1" in check.evidence.output
    assert "Xid" in (check.repair or "")
    child = int((tmp_path / "child").read_text())
    deadline_s = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline_s, "the worker's own child is left running"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'Segment table is full' >&2; exit 7", "exit code 7: Segment table is full"),
        ("exit 0", "exit code 0: no message"),
        ('echo \'{"error": "something new", "message": ""}\' > "$3"; exit 1', "exit code 1"),
        ('echo \'{"torch": 2\' > "$3"', "exit code 0"),
    ],
)
def test_an_end_without_an_answer(script: str, words: str, tmp_path: Path) -> None:
    check = judge_nccl_all_reduce(run_fake(tmp_path, script), num_gpus=2)
    assert (check.verdict, check.fault) == ("failure", "nccl_no_answer")
    assert words in check.found


def test_a_worker_that_cannot_be_started(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("no program")
    path.chmod(0o644)
    check = judge_nccl_all_reduce(nccl.read_nccl(path, environ=os.environ), num_gpus=1)
    assert (check.verdict, check.fault) == ("failure", "worker_not_startable")
    assert "Permission denied" in check.found


def test_what_is_not_there_is_not_checked(tmp_path: Path) -> None:
    facts = nccl.read_nccl(tmp_path / "gone", environ=os.environ)
    check = judge_nccl_all_reduce(facts, num_gpus=1)
    assert (check.verdict, check.fault) == ("not_checked", None)
    check = judge_nccl_all_reduce(answering(tmp_path, '{"error": "no_cuda", "message": "m"}', 1), num_gpus=0)
    assert (check.verdict, check.found) == ("not_checked", "no GPU")


def test_the_real_probe_without_torch() -> None:
    """This environment has no torch, so the real probe runs and says so."""
    facts = nccl.read_nccl(Path(sys.executable), environ=os.environ)
    assert facts.fault == "no_torch"
    assert facts.exit_code == 1
    assert "No module named 'torch'" in (facts.message or "")


@pytest.mark.worker
def test_the_real_probe_under_the_real_worker(worker: Worker) -> None:
    facts = nccl.read_nccl(worker.python, environ={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert facts.fault == "no_cuda"
    assert "torch 2.11.0" in (facts.message or "")
