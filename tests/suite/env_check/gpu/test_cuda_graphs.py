"""What CUDA graphs need of the driver: a stub driver answers, as no GPU is here; its deaths are real ones."""

import os
from pathlib import Path

import pytest

from suite.env_check.check import Judgement
from suite.env_check.gpu import cuda as cuda_start
from suite.env_check.gpu.cuda import CudaFacts, judge_cuda_graphs
from tests.fixtures.stand_ins.stub_drivers.build import build


def check(folder: Path, *options: str) -> Judgement:
    build(folder / "libcuda.so.1", "cuda_driver.c", *options)
    return judge_cuda_graphs(cuda_start.read_cuda({**os.environ, "LD_LIBRARY_PATH": str(folder)}))


def test_a_new_driver_with_memory_pools_is_fine(tmp_path: Path) -> None:
    found = check(tmp_path)
    assert (found.verdict, found.found) == ("ok", "a driver of CUDA 13.0, memory pools")
    assert found.evidence == CudaFacts(driver_version="13.0", memory_pools=(True, True))


def test_a_driver_before_conditional_nodes_is_a_failure_with_a_way_out(tmp_path: Path) -> None:
    found = check(tmp_path, "-DCUDA_VERSION=12020")
    assert (found.verdict, found.fault) == ("failure", "driver_too_old_for_graphs")
    assert "12.2" in found.found
    assert "env.sim.physics.use_cuda_graph=False" in (found.repair or "")


def test_the_oldest_driver_that_will_do(tmp_path: Path) -> None:
    assert check(tmp_path, "-DCUDA_VERSION=12040").verdict == "ok"


def test_a_gpu_without_memory_pools_is_named(tmp_path: Path) -> None:
    found = check(tmp_path, "-DPOOLLESS=1")
    assert (found.verdict, found.fault) == ("warning", "no_memory_pools")
    assert "no memory pools (GPU 1)" in found.found
    assert "enable_uvm" in (found.repair or "")


@pytest.mark.parametrize(
    ("option", "words"),
    [("-DNO_DEVICE", "cuInit returns 100"), ("-DABORTS", "ends by SIGABRT"), ("-DGPUS=0", "no GPU")],
)
def test_a_driver_that_does_not_answer_is_not_checked(option: str, words: str, tmp_path: Path) -> None:
    found = check(tmp_path, option)
    assert (found.verdict, found.fault) == ("not_checked", None)
    assert words in found.found


def test_a_library_that_is_no_driver_is_not_checked(tmp_path: Path) -> None:
    build(tmp_path / "libcuda.so.1", "library.c")
    facts = cuda_start.read_cuda({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert "cuInit" in judge_cuda_graphs(facts).found
