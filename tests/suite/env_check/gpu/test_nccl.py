"""NCCL's check. No GPU is here: the probe runs for real as far as it gets, and fake workers stand in for the rest.

A fake worker is a shell script in place of the worker's Python; ``$3`` is the file that the probe's answer belongs in.
What NCCL itself does on a machine whose peer-to-peer transfers hang was not seen.
"""

import json
import os
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from suite.env_check import nodes, report
from suite.env_check.check import Judgement
from suite.env_check.gpu import nccl
from suite.env_check.gpu.nccl import PATHS, NcclFacts, judge_nccl_all_reduce, read_nccl, try_paths
from suite.external.nvml.values import GpuState, NvmlState
from suite.install.worker import Worker
from tasks import nccl_probe

RESULT: Final[dict[str, Any]] = {
    "torch": "2.11.0+cu130",
    "cuda": "13.0",
    "nccl": "2.28.9",
    "gpus": ["NVIDIA H200"] * 2,
    "peer_access": [[True, True], [True, True]],
    "is_sum_right": True,
    "message_bytes": 2**28,
    "times_s": [0.001, 0.0011],
    "bus_bandwidth_gb_s": 11.25,
}
WORKS: Final = f"cat > \"$3\" <<'END'\n{json.dumps(RESULT)}\nEND\n"
FAILS: Final = 'echo \'{"error": "nccl_error", "message": "unhandled system error"}\' > "$3"; exit 1\n'
HANGS: Final = "sleep 3600\n"
P2P: Final = '[ "$NCCL_P2P_DISABLE" = 1 ]'
SHM: Final = '[ "$NCCL_SHM_DISABLE" = 1 ]'
NVLS: Final = '[ "$NCCL_NVLS_ENABLE" = 0 ]'
WARNING: Final = "gpu47:4962:5097 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"
SMALL_SHM: Final = "Start the container with --ipc=host or --shm-size=8g."
LONG_S: Final = 60.0  # never waited for


def fake_worker(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def run_fake(folder: Path, script: str, timeout_s: float = 20.0) -> NcclFacts:
    return read_nccl(fake_worker(folder, script), environ=os.environ, timeout_s=timeout_s)


def answering(answer: dict[str, Any], exit_code: int = 0) -> str:
    return f"cat > \"$3\" <<'END'\n{json.dumps(answer)}\nEND\nexit {exit_code}"


@pytest.mark.parametrize(
    ("script", "verdict", "fault", "found"),
    [
        (answering(RESULT), "ok", None, "bus bandwidth 11.2 GB/s"),
        (answering(RESULT | {"is_sum_right": False}), "failure", "nccl_wrong_sum", "wrong sum"),
        (answering(RESULT | {"peer_access": [[True, False]] * 2}), "warning", "no_peer_access", "no peer access"),
        (answering(RESULT | {"gpus": ["NVIDIA H200"]}), "failure", "nccl_gpus_missing", "NVML shows 2"),
        *(
            (answering({"error": error, "message": "this is why"}, 1), "failure", error, "this is why")
            for error in nccl_probe.ERRORS
        ),
        (
            "echo 'node1:77:99 NCCL WARN Cuda failure 999'; echo 'Extension modules' >&2; kill -ABRT $$",
            "failure", "nccl_crashed", "NCCL WARN Cuda failure 999",
        ),
        ("echo 'Segment table is full' >&2; exit 7", "failure", "nccl_no_answer", "exit code 7: Segment table is full"),
        ("exit 0", "failure", "nccl_no_answer", "exit code 0: no message"),
        (answering({"error": "something new", "message": ""}, 1), "failure", "nccl_no_answer", "exit code 1"),
        ('echo \'{"torch": 2\' > "$3"', "failure", "nccl_no_answer", "exit code 0"),
    ],
)  # fmt: skip
def test_each_end_of_the_probe(script: str, verdict: str, fault: str | None, found: str, tmp_path: Path) -> None:
    check = judge_nccl_all_reduce(run_fake(tmp_path, script), 2, None)
    assert (check.verdict, check.fault) == (verdict, fault), check
    assert found in check.found


def test_a_hang_ends_in_time_with_all_its_processes(tmp_path: Path) -> None:
    script = f"sleep 3600 & echo $! > {tmp_path}/child; echo 'waiting for rank 1' >&2; wait"
    check = judge_nccl_all_reduce(run_fake(tmp_path, script, timeout_s=1.0), 2, None)
    assert (check.verdict, check.fault) == ("failure", "nccl_hung")
    assert "waiting for rank 1" in check.evidence.output
    child = int((tmp_path / "child").read_text())
    deadline_s = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline_s, "the worker's own child is left running"
        time.sleep(0.05)


def test_a_worker_that_cannot_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("no program")
    path.chmod(0o644)
    check = judge_nccl_all_reduce(read_nccl(path, environ=os.environ), 1, None)
    assert (check.verdict, check.fault) == ("failure", "worker_not_startable")
    missing = judge_nccl_all_reduce(read_nccl(tmp_path / "gone", environ=os.environ), 1, None)
    assert (missing.verdict, missing.fault) == ("not_checked", None)
    no_gpu = run_fake(tmp_path, answering({"error": "no_cuda", "message": "m"}, 1))
    assert judge_nccl_all_reduce(no_gpu, 0, None).verdict == "not_checked"


def test_the_real_probe_without_torch() -> None:
    """This environment has no torch, so the real probe runs and says so."""
    facts = read_nccl(Path(sys.executable), environ=os.environ)
    assert (facts.fault, facts.exit_code) == ("no_torch", 1)


@pytest.mark.worker
def test_the_real_probe_under_the_real_worker(worker: Worker) -> None:
    facts = read_nccl(worker.python, environ={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert facts.fault == "no_cuda"
    assert "torch 2.11.0" in (facts.message or "")


def probe_that(folder: Path, condition: str, otherwise: str) -> Path:
    """A worker's Python whose probe works under a condition of the shell; each start leaves a line in ``starts``."""
    count = f'echo "P2P=$NCCL_P2P_DISABLE SHM=$NCCL_SHM_DISABLE" >> {folder}/starts\n'
    return fake_worker(folder, f"{count}if {condition}; then\n{WORKS}else\n{otherwise}fi")


def check(
    python: Path, *, timeout_s: float = LONG_S, retry_s: float = LONG_S, shm: str | None = SMALL_SHM, **variables: str
) -> Judgement:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")} | variables
    facts = read_nccl(python, environ=environ, timeout_s=timeout_s)
    tried = try_paths(facts, environ=environ, timeout_s=retry_s)
    return judge_nccl_all_reduce(tried, len(RESULT["gpus"]), shm)


def starts(folder: Path) -> list[str]:
    return (folder / "starts").read_text().splitlines()


@pytest.mark.parametrize(
    ("condition", "otherwise", "timeout_s", "fault", "num_tries", "found", "repair"),
    [
        (P2P, HANGS, 0.5, "nccl_p2p_broken", 1, "works with NCCL_P2P_DISABLE=1 (11.2 GB/s)", "export NCCL_P2P_DISABLE"),
        (P2P, FAILS, LONG_S, "nccl_p2p_broken", 1, "unhandled system error", "Watchdog caught collective operation"),
        (P2P, WORKS.replace('_right": true', '_right": false'), LONG_S, "nccl_p2p_broken", 1, "wrong sum", "IOMMU"),
        (SHM, FAILS, LONG_S, "nccl_shm_broken", 2, "unhandled system error", "--shm-size=8g"),
        (f"{P2P} && {SHM}", FAILS, LONG_S, "nccl_p2p_and_shm_broken", 3, "unhandled system error", "sockets"),
        (NVLS, f'echo "{WARNING}"; {FAILS}', LONG_S, "nccl_nvls_broken", 4, WARNING, "nvidia-fabricmanager"),
    ],
)
def test_the_path_without_which_it_works_is_to_blame(
    condition: str,
    otherwise: str,
    timeout_s: float,
    fault: str,
    num_tries: int,
    found: str,
    repair: str,
    tmp_path: Path,
) -> None:
    judged = check(probe_that(tmp_path, condition, otherwise), timeout_s=timeout_s)
    assert (judged.verdict, judged.fault) == ("failure", fault), judged
    assert found in judged.found
    assert repair in (judged.repair or "")
    *_, last = judged.evidence.tries
    assert (len(judged.evidence.tries), last.fault, last.bus_bandwidth_gb_s) == (num_tries, None, 11.25)
    assert len(starts(tmp_path)) == 1 + num_tries


def test_where_no_path_is_to_blame_the_fault_is_the_general_one(tmp_path: Path) -> None:
    hung = check(probe_that(tmp_path, "false", f'echo "{WARNING}"; {HANGS}'), timeout_s=0.5, retry_s=0.2)
    assert (hung.verdict, hung.fault) == ("failure", "nccl_hung")
    assert [attempt.fault for attempt in hung.evidence.tries] == ["nccl_hung"] * len(PATHS)
    assert WARNING in hung.found
    assert "nor does it work with NCCL_P2P_DISABLE=1, with NCCL_SHM_DISABLE=1, with NCCL_P2P_DISABLE=1 NCCL_SHM" in (
        hung.found
    )


def test_what_works_or_has_another_cause_is_tried_once(tmp_path: Path) -> None:
    works, no_torch = tmp_path / "works", tmp_path / "no-torch"
    for folder in (works, no_torch):
        folder.mkdir()
    assert check(probe_that(works, "true", FAILS)).verdict == "ok"
    assert check(probe_that(no_torch, "false", FAILS.replace("nccl_error", "no_torch"))).fault == "no_torch"
    assert (len(starts(works)), len(starts(no_torch))) == (1, 1)


def test_what_the_user_turned_off_already_is_neither_tried_nor_advised(tmp_path: Path) -> None:
    judged = check(probe_that(tmp_path, SHM, FAILS), shm=None, NCCL_P2P_DISABLE="1")
    assert judged.fault == "nccl_shm_broken"
    assert "--shm-size" not in (judged.repair or "--shm-size")  # /dev/shm is large enough
    assert starts(tmp_path) == ["P2P=1 SHM=", "P2P=1 SHM=1"]
    assert judged.evidence.variables == {"NCCL_P2P_DISABLE": "1"}
    nowhere = check(probe_that(tmp_path, "false", FAILS), NCCL_P2P_DISABLE="1", NCCL_DEBUG="INFO")
    tried = [attempt.variables for attempt in nowhere.evidence.tries]
    assert tried == [("NCCL_SHM_DISABLE=1",), ("NCCL_NVLS_ENABLE=0",)]
    assert "NCCL_DEBUG" not in (nowhere.repair or "NCCL_DEBUG")


@pytest.mark.parametrize(("num_gpus", "num_starts"), [(1, 1), (2, 2)])
def test_a_single_gpu_has_no_path_to_another(
    num_gpus: int, num_starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_nvml: Future[NvmlState] = Future()
    of_nvml.set_result(NvmlState(gpus=tuple(GpuState(index=index) for index in range(num_gpus))))
    monkeypatch.setattr(report, "_has_device_node", lambda: True)
    facts = report._read_nccl(probe_that(tmp_path, P2P, FAILS), os.environ, of_nvml)
    assert facts.fault == "nccl_error"
    assert len(starts(tmp_path)) == num_starts


def test_all_tries_end_before_the_env_check_of_a_node_has_to() -> None:
    assert nccl.TIMEOUT_S + len(PATHS) * nccl.RETRY_TIMEOUT_S < nodes.TIMEOUT_S
