"""Whether CUDA starts, and what its graphs need: a stub driver gives each code of ``cuInit``; its deaths are real."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.env_check.gpu.cuda import NO_GPU, CudaFacts, judge_cuda_graphs, judge_cuda_start, read_cuda
from suite.env_check.gpu.driver import DriverFacts
from suite.external.nvml.values import NvmlState
from tests.fixtures.machines.nvidia_gpus import CUDA_LIBRARY, DOCKER, DRIVER, HEALTHY, NODES, second
from tests.fixtures.stand_ins.stub_drivers.build import build

COMPAT: Final = replace(CUDA_LIBRARY, path="/usr/local/cuda/compat/libcuda.so.1", is_compat=True)
IN_DOCKER: Final = replace(DRIVER, container=DOCKER)
DENIED: Final = replace(IN_DOCKER, refusals=dict.fromkeys(NODES, "EPERM"))


def read(folder: Path, *options: str, source: str = "cuda_driver.c") -> CudaFacts:
    build(folder / "libcuda.so.1", source, *options)
    return read_cuda({**os.environ, "LD_LIBRARY_PATH": str(folder)})


@pytest.mark.parametrize(
    ("option", "fault", "found"),
    [
        ("", None, "CUDA 13.0"),
        ("-DINIT_RESULT=3", "cuda_not_started", "cuInit returns 3 (CUDA_ERROR_OF_STUB)"),
        ("-DINIT_RESULT=34", "cuda_stub_library", "cuInit returns 34"),
        ("-DINIT_RESULT=100", "cuda_no_device", "cuInit returns 100"),
        ("-DINIT_RESULT=802", "cuda_system_not_ready", "cuInit returns 802"),
        ("-DINIT_RESULT=803", "cuda_driver_mismatch", "cuInit returns 803"),
        ("-DINIT_RESULT=804", "cuda_compat_not_supported", "cuInit returns 804"),
        ("-DINIT_RESULT=805", "cuda_mps_failed", "cuInit returns 805"),
        ("-DINIT_RESULT=999", "cuda_unknown_error", "cuInit returns 999"),
        ("-DABORTS", "cuda_aborted", "ends by SIGABRT"),
        ("-DGPUS=0", "cuda_no_device", "CUDA lists no GPU, NVML lists 2"),
    ],
)
def test_each_way_in_which_cuda_does_not_start(option: str, fault: str | None, found: str, tmp_path: Path) -> None:
    judged = judge_cuda_start(read(tmp_path, *filter(None, (option,))), DRIVER, HEALTHY)
    assert (judged.verdict, judged.fault) == ("failure" if fault else "ok", fault), judged
    assert found in judged.found


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    facts = read(tmp_path, source="library.c")
    judged = judge_cuda_start(facts, DRIVER, HEALTHY)
    assert (judged.fault, judged.found) == ("cuda_not_started", "the driver has no cuInit")
    assert judge_cuda_graphs(facts).verdict == "not_checked"


@pytest.mark.parametrize(
    ("code", "driver", "nvml", "words", "without"),
    [
        (802, DRIVER, second(fabric="in_progress"), "systemctl start nvidia-fabricmanager", "nvidia-smi -r"),
        (802, DRIVER, HEALTHY, "nvidia-smi -r", "Start the"),
        (804, replace(DRIVER, libraries=(COMPAT,)), HEALTHY, "/usr/local/cuda/compat", "recreate"),
        (804, DRIVER, HEALTHY, "ld.so.conf.d", "recreate"),
        (999, DRIVER, HEALTHY, "modprobe -r nvidia_uvm", "ontainer"),
        (999, IN_DOCKER, HEALTHY, "Recreate the container", "--gpus"),
        (803, DRIVER, HEALTHY, "Restart the machine", "ontainer"),
        (803, IN_DOCKER, HEALTHY, "Recreate the container", "Restart"),
        (100, replace(DRIVER, nodes=NODES[1:]), HEALTHY, "nvidia-modprobe -u", "ontainer"),
        (999, DENIED, HEALTHY, "nvidia-ctk cdi generate", "nvidia_uvm"),
    ],
)
def test_the_repair_follows_from_the_code_and_the_driver(
    code: int, driver: DriverFacts, nvml: NvmlState, words: str, without: str
) -> None:
    repair = judge_cuda_start(CudaFacts(message="cuInit fails", code=code), driver, nvml).repair or ""
    assert words in repair
    assert without not in repair


def test_no_gpu_to_start_on_is_not_checked_and_hidden_ones_are_named() -> None:
    assert judge_cuda_start(CudaFacts(message=NO_GPU), DRIVER, NvmlState()).verdict == "not_checked"
    hidden = judge_cuda_start(CudaFacts(message="cuInit returns 100", code=100), DRIVER, replace(HEALTHY, gpus=()))
    assert (hidden.fault, hidden.verdict) == ("gpus_hidden", "failure")


@pytest.mark.parametrize(
    ("option", "verdict", "fault", "found"),
    [
        ("-DCUDA_VERSION=12020", "failure", "driver_too_old_for_graphs", "a driver of CUDA 12.2"),
        ("-DCUDA_VERSION=12040", "ok", None, "a driver of CUDA 12.4, memory pools"),
        ("-DPOOLLESS=1", "warning", "no_memory_pools", "no memory pools (GPU 1)"),
        ("-DNO_DEVICE", "not_checked", None, "cuInit returns 100"),
        ("-DABORTS", "not_checked", None, "ends by SIGABRT"),
        ("-DGPUS=0", "not_checked", None, "no GPU"),
    ],
)
def test_what_cuda_graphs_need(option: str, verdict: str, fault: str | None, found: str, tmp_path: Path) -> None:
    judged = judge_cuda_graphs(read(tmp_path, option))
    assert (judged.verdict, judged.fault) == (verdict, fault), judged
    assert found in judged.found
    assert ("use_cuda_graph=False" in (judged.repair or "")) == bool(fault)
