"""Whether CUDA starts: a stub driver gives each code of ``cuInit``; its deaths are real ones."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check.check import Judgement
from suite.env_check.container import Container
from suite.env_check.gpu import cuda as cuda_start
from suite.env_check.gpu.cuda import CudaFacts, judge_cuda_start
from suite.env_check.gpu.driver import DriverFacts, Library
from suite.external.nvml.values import GpuState, NvmlState
from tests.fixtures.stand_ins.stub_drivers.build import build

HOST = Container(is_container=False, signs=(), driver_capabilities=None, visible_devices=None)
DOCKER = replace(HOST, is_container=True, signs=("/.dockerenv",))
NODES = ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl")
DRIVER = DriverFacts(
    kernel_version="580.65.06",
    kernel_line=None,
    libraries=(Library(name="libcuda.so.1", path="/lib/libcuda.so.1", file="libcuda.so.580.65.06", version=None),),
    nodes=NODES,
    closed_nodes=(),
    num_pci_gpus=1,
    container=HOST,
)
ONE_GPU = NvmlState(driver_version="580.65.06", num_gpus=1, gpus=(GpuState(index=0, fabric="in_progress"),))
COMPAT = replace(DRIVER.libraries[0], path="/usr/local/cuda/compat/libcuda.so.1", is_compat=True)


def read(folder: Path, *options: str, timeout_s: float = 60.0) -> CudaFacts:
    build(folder / "libcuda.so.1", "cuda_driver.c", *options)
    return cuda_start.read_cuda({**os.environ, "LD_LIBRARY_PATH": str(folder)}, timeout_s=timeout_s)


def check(code: int | None, driver: DriverFacts = DRIVER, nvml: NvmlState = ONE_GPU) -> Judgement:
    return judge_cuda_start(CudaFacts(message=f"cuInit returns {code}", code=code), driver, nvml)


def test_a_driver_that_starts(tmp_path: Path) -> None:
    found = judge_cuda_start(read(tmp_path), DRIVER, ONE_GPU)
    assert (found.verdict, found.found) == ("ok", "CUDA 13.0")


@pytest.mark.parametrize(
    ("option", "fault", "found"),
    [
        ("-DINIT_RESULT=3", "cuda_not_started", "cuInit returns 3 (CUDA_ERROR_OF_STUB)"),
        ("-DINIT_RESULT=34", "cuda_stub_library", "cuInit returns 34"),
        ("-DINIT_RESULT=100", "cuda_no_device", "cuInit returns 100"),
        ("-DINIT_RESULT=101", "cuda_not_started", "cuInit returns 101"),
        ("-DINIT_RESULT=801", "cuda_not_started", "cuInit returns 801"),
        ("-DINIT_RESULT=802", "cuda_system_not_ready", "cuInit returns 802"),
        ("-DINIT_RESULT=803", "cuda_driver_mismatch", "cuInit returns 803"),
        ("-DINIT_RESULT=804", "cuda_compat_not_supported", "cuInit returns 804"),
        ("-DINIT_RESULT=805", "cuda_mps_failed", "cuInit returns 805"),
        ("-DINIT_RESULT=999", "cuda_unknown_error", "cuInit returns 999"),
        ("-DABORTS", "cuda_aborted", "ends by SIGABRT"),
        ("-DGPUS=0", "cuda_no_device", "CUDA lists no GPU, NVML lists 1"),
    ],
)
def test_any_other_end_is_a_failure(tmp_path: Path, option: str, fault: str, found: str) -> None:
    check = judge_cuda_start(read(tmp_path, option), DRIVER, ONE_GPU)
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert found in check.found


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    build(tmp_path / "libcuda.so.1", "library.c")
    facts = cuda_start.read_cuda({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    check = judge_cuda_start(facts, DRIVER, ONE_GPU)
    assert (check.fault, check.found) == ("cuda_not_started", "the driver has no cuInit")


@pytest.mark.parametrize(
    ("code", "driver", "nvml", "words", "without"),
    [
        (802, DRIVER, ONE_GPU, ("systemctl start nvidia-fabricmanager", "580.65.06"), "nvidia-smi -r"),
        (802, DRIVER, replace(ONE_GPU, gpus=(GpuState(index=0, fabric="completed"),)), ("nvidia-smi -r",), "Start the"),
        (804, replace(DRIVER, libraries=(COMPAT,)), ONE_GPU, ("/usr/local/cuda/compat", "LD_LIBRARY_PATH"), "recreate"),
        (804, DRIVER, ONE_GPU, ("cuda-compat", "ld.so.conf.d"), "recreate"),
        (999, DRIVER, ONE_GPU, ("modprobe -r nvidia_uvm",), "ontainer"),
        (999, replace(DRIVER, container=DOCKER), ONE_GPU, ("Recreate the container", "nvidia_uvm"), "--gpus"),
        (803, DRIVER, ONE_GPU, ("Restart the machine",), "ontainer"),
        (803, replace(DRIVER, container=DOCKER), ONE_GPU, ("Recreate the container",), "Restart"),
        (100, replace(DRIVER, nodes=NODES[1:]), ONE_GPU, ("nvidia-modprobe -u",), "ontainer"),
        (
            999,
            replace(DRIVER, container=DOCKER, closed_nodes=NODES, refusals=dict.fromkeys(NODES, "EPERM")),
            ONE_GPU,
            ("nvidia-ctk cdi generate",),
            "nvidia_uvm",
        ),
    ],
)
def test_the_repair_follows_from_the_code_and_the_driver(
    code: int, driver: DriverFacts, nvml: NvmlState, words: tuple[str, ...], without: str
) -> None:
    repair = check(code, driver, nvml).repair or ""
    for word in words:
        assert word in repair
    assert without not in repair


def test_no_gpu_to_start_on_is_not_checked_and_hidden_ones_are_named() -> None:
    assert judge_cuda_start(CudaFacts(message=cuda_start.NO_GPU), DRIVER, NvmlState()).verdict == "not_checked"
    hidden = check(100, nvml=replace(ONE_GPU, gpus=()))
    assert (hidden.fault, hidden.verdict) == ("gpus_hidden", "failure")
    assert "CUDA_VISIBLE_DEVICES" in (hidden.repair or "")
