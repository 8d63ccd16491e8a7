"""Which path between GPUs is broken: stand-in probes that hang or fail unless a variable of NCCL is set.

No GPU is here. What NCCL itself does on a machine whose peer-to-peer transfers hang was not seen.
"""

import json
import os
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import pytest

from suite.env_check import nodes
from suite.env_check import report as all_checks
from suite.env_check.check import Judgement
from suite.env_check.gpu import nccl
from suite.env_check.gpu.nccl import PATHS, judge_nccl_all_reduce
from suite.external.nvml.values import GpuState, NvmlState
from tests.suite.env_check.gpu.test_nccl import RESULT, fake_worker

WORKS: Final = f"cat > \"$3\" <<'END'\n{json.dumps(RESULT | {'bus_bandwidth_gb_s': 11.25})}\nEND\n"
FAILS: Final = 'echo \'{"error": "nccl_error", "message": "unhandled system error"}\' > "$3"; exit 1\n'
HANGS: Final = "sleep 3600\n"
P2P: Final = '[ "$NCCL_P2P_DISABLE" = 1 ]'
SHM: Final = '[ "$NCCL_SHM_DISABLE" = 1 ]'
NVLS: Final = '[ "$NCCL_NVLS_ENABLE" = 0 ]'
WARNING: Final = "gpu47:4962:5097 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"
SMALL_SHM: Final = "Start the container with --ipc=host or --shm-size=8g."
LONG_S: Final = 60.0  # never waited for


def probe_that(folder: Path, condition: str, otherwise: str) -> Path:
    """A worker's Python whose probe works under a condition of the shell; each start leaves a line in ``starts``."""
    count = f'echo "P2P=$NCCL_P2P_DISABLE SHM=$NCCL_SHM_DISABLE" >> {folder}/starts\n'
    return fake_worker(folder, f"{count}if {condition}; then\n{WORKS}else\n{otherwise}fi")


def check(python: Path, *, timeout_s: float = LONG_S, retry_timeout_s: float = LONG_S, **variables: str) -> Judgement:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")} | variables
    facts = nccl.read_nccl(python, environ=environ, timeout_s=timeout_s)
    tried = nccl.try_paths(facts, environ=environ, timeout_s=retry_timeout_s)
    return judge_nccl_all_reduce(tried, num_gpus=len(RESULT["gpus"]), shm_repair=SMALL_SHM)


def starts(folder: Path) -> list[str]:
    return (folder / "starts").read_text().splitlines()


def test_a_hang_that_ends_without_peer_to_peer_names_it_and_the_variable(tmp_path: Path) -> None:
    found = check(probe_that(tmp_path, P2P, HANGS), timeout_s=0.5)
    assert (found.verdict, found.fault) == ("failure", "nccl_p2p_broken")
    assert "no answer in" in found.found
    assert "it works with NCCL_P2P_DISABLE=1 (11.2 GB/s)" in found.found
    assert starts(tmp_path) == ["P2P= SHM=", "P2P=1 SHM="]  # what is known is not tried again
    for words in ("export NCCL_P2P_DISABLE=1", "the host's memory", "IOMMU", "ACS", "virtual machine", "consumer"):
        assert words in (found.repair or "")


@pytest.mark.parametrize(
    ("condition", "fault", "variables", "cause"),
    [
        (P2P, "nccl_p2p_broken", ("NCCL_P2P_DISABLE=1",), "Watchdog caught collective operation timeout"),
        (SHM, "nccl_shm_broken", ("NCCL_SHM_DISABLE=1",), "--shm-size=8g"),
        (f"{P2P} && {SHM}", "nccl_p2p_and_shm_broken", ("NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"), "sockets"),
    ],
)
def test_a_failure_names_the_path_without_which_it_works(
    condition: str, fault: str, variables: tuple[str, ...], cause: str, tmp_path: Path
) -> None:
    found = check(probe_that(tmp_path, condition, FAILS))
    assert (found.verdict, found.fault) == ("failure", fault)
    assert "unhandled system error" in found.found
    assert cause in (found.repair or "")
    last = found.evidence.tries[-1]
    assert (last.variables, last.fault, last.bus_bandwidth_gb_s) == (variables, None, 11.25)
    assert {each.fault for each in found.evidence.tries[:-1]} <= {"nccl_error"}


def test_a_wrong_sum_that_is_right_without_peer_to_peer(tmp_path: Path) -> None:
    wrong = WORKS.replace('"is_sum_right": true', '"is_sum_right": false')
    found = check(probe_that(tmp_path, P2P, wrong))
    assert (found.verdict, found.fault) == ("failure", "nccl_p2p_broken")
    assert found.found.startswith("wrong sum; it works with NCCL_P2P_DISABLE=1")


def test_where_no_path_is_to_blame_the_fault_is_the_general_one(tmp_path: Path) -> None:
    hung = check(probe_that(tmp_path, "false", HANGS), timeout_s=0.2, retry_timeout_s=0.2)
    assert (hung.verdict, hung.fault) == ("failure", "nccl_hung")
    assert [each.fault for each in hung.evidence.tries] == ["nccl_hung"] * len(PATHS)
    assert "nor does it work with NCCL_P2P_DISABLE=1, with NCCL_SHM_DISABLE=1, with NCCL_P2P_DISABLE=1 NCCL_SHM" in (
        hung.found
    )
    assert len(starts(tmp_path)) == 1 + len(PATHS)


def test_what_works_or_has_another_cause_is_tried_once(tmp_path: Path) -> None:
    works, no_torch = tmp_path / "works", tmp_path / "no-torch"
    for folder in (works, no_torch):
        folder.mkdir()
    assert check(probe_that(works, "true", FAILS)).verdict == "ok"
    without = FAILS.replace("nccl_error", "no_torch")
    assert check(probe_that(no_torch, "false", without)).fault == "no_torch"
    assert (len(starts(works)), len(starts(no_torch))) == (1, 1)


def test_nvls_that_is_broken_has_its_variable_and_what_nccl_says(tmp_path: Path) -> None:
    found = check(probe_that(tmp_path, NVLS, f'echo "{WARNING}"; {FAILS}'))
    assert (found.verdict, found.fault) == ("failure", "nccl_nvls_broken")
    assert WARNING in found.found
    for words in ("export NCCL_NVLS_ENABLE=0 ", "nvidia-fabricmanager"):
        assert words in (found.repair or "")
    assert [each.fault for each in found.evidence.tries] == ["nccl_error"] * 3 + [None]


def test_a_hang_is_told_with_what_nccl_warned_of(tmp_path: Path) -> None:
    found = check(probe_that(tmp_path, "false", f'echo "{WARNING}"; {HANGS}'), timeout_s=0.5, retry_timeout_s=0.2)
    assert found.fault == "nccl_hung"
    assert WARNING in found.found


def test_what_the_user_turned_off_already_is_neither_tried_nor_advised(tmp_path: Path) -> None:
    found = check(probe_that(tmp_path, SHM, FAILS), NCCL_P2P_DISABLE="1")
    assert found.fault == "nccl_shm_broken"
    assert starts(tmp_path) == ["P2P=1 SHM=", "P2P=1 SHM=1"]
    assert found.evidence.variables == {"NCCL_P2P_DISABLE": "1"}
    nowhere = check(probe_that(tmp_path, "false", FAILS), NCCL_P2P_DISABLE="1", NCCL_DEBUG="INFO")
    assert [each.variables for each in nowhere.evidence.tries] == [("NCCL_SHM_DISABLE=1",), ("NCCL_NVLS_ENABLE=0",)]
    assert "NCCL_DEBUG" not in (nowhere.repair or "")


def test_a_large_dev_shm_is_no_cause(tmp_path: Path) -> None:
    tried = check(probe_that(tmp_path, SHM, FAILS)).evidence
    assert "--shm-size" not in (judge_nccl_all_reduce(tried, num_gpus=2).repair or "")


@pytest.mark.parametrize(("num_gpus", "num_starts"), [(1, 1), (2, 2)])
def test_a_single_gpu_has_no_path_to_another(
    num_gpus: int, num_starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_nvml: Future[NvmlState] = Future()
    of_nvml.set_result(NvmlState(gpus=tuple(GpuState(index=index) for index in range(num_gpus))))
    monkeypatch.setattr(all_checks, "_has_device_node", lambda: True)
    facts = all_checks._read_nccl(probe_that(tmp_path, P2P, FAILS), os.environ, of_nvml)
    assert facts.fault == "nccl_error"
    assert len(starts(tmp_path)) == num_starts


def test_all_tries_end_before_the_env_check_of_a_node_has_to() -> None:
    assert nccl.TIMEOUT_S + len(PATHS) * nccl.RETRY_TIMEOUT_S < nodes.TIMEOUT_S
