"""What a rank has on other ranks' GPUs, and whether it uses MPS, by stub libraries of the CUDA driver and NVML.

Not seen on real GPUs: whether Isaac Lab, torch, NCCL or Warp leave a context there, and which process ids NVML gives in
containers.
"""

import ctypes
from pathlib import Path

import pynvml
import pytest

from suite.schema.record import CheckResult
from tasks.checks import other_gpus
from tasks.rank import mps
from tests.fixtures.stand_ins.stub_drivers.build import build

OWN = 1  # the GPU of local rank 1


def found(folder: Path, cuda: str = "-DCONTEXT_ON=2", *nvml: str) -> CheckResult:
    """The check of a rank on GPU 1, where its context is."""
    libcuda = build(folder / "libcuda.so", "cuda_driver.c", cuda)
    libnvml = build(folder / "libnvml.so", "nvml.c", *nvml)
    return other_gpus.check(OWN, other_gpus.read(str(libcuda), str(libnvml)))


def test_a_rank_that_keeps_to_its_gpu_is_fine(tmp_path: Path) -> None:
    check = found(tmp_path, "-DCONTEXT_ON=2", "-DON=2")
    assert (check.name, check.verdict, check.fault) == ("memory_on_other_gpus", "ok", None)
    assert check.found == "no CUDA context on GPU 0"


def test_a_context_on_another_gpu_warns_with_its_memory(tmp_path: Path) -> None:
    check = found(tmp_path, "-DCONTEXT_ON=3", "-DON=3")
    assert (check.verdict, check.fault) == ("warning", "context_on_other_gpu")
    assert check.found == "it is on GPU 0 with 0.52 GB"


@pytest.mark.parametrize("option", ["-DON=0", "-DREFUSES"])
def test_where_nvml_knows_it_by_no_process_id_memory_is_not_known_and_said_so(option: str, tmp_path: Path) -> None:
    check = found(tmp_path, "-DCONTEXT_ON=3", option)
    assert check.verdict == "warning"
    assert check.found == "it is on GPU 0; NVML does not know it by its process id, so memory there is not known"
    (tmp_path / "fine").mkdir()
    fine = found(tmp_path / "fine", "-DCONTEXT_ON=2", option)
    assert fine.verdict == "ok"
    assert fine.found.endswith("so memory there is not known")


def test_the_same_process_id_of_another_namespace_is_somebody_else(tmp_path: Path) -> None:
    """NVML lists the id on GPU 0, and not on GPU 1, where this process surely is."""
    check = found(tmp_path, "-DCONTEXT_ON=2", "-DON=1")
    assert check.verdict == "ok"
    assert "does not know it" in check.found


def test_without_nvml_the_cuda_driver_still_says_it(tmp_path: Path) -> None:
    libcuda = build(tmp_path / "libcuda.so", "cuda_driver.c", "-DCONTEXT_ON=3")
    seen = other_gpus.read(str(libcuda), str(tmp_path / "gone.so"))
    assert [(gpu.has_context, gpu.is_listed, gpu.memory_gb) for gpu in seen] == [(True, None, None)] * 2
    assert other_gpus.check(OWN, seen).verdict == "warning"


@pytest.mark.parametrize(
    ("options", "source", "words"),
    [(("-DNO_DEVICE",), "cuda_driver.c", "cuInit returns 100"), ((), "library.c", "the driver has no cuInit")],
)
def test_a_driver_that_does_not_answer_is_not_known(
    options: tuple[str, ...], source: str, words: str, tmp_path: Path
) -> None:
    library = build(tmp_path / "libcuda.so", source, *options)
    with pytest.raises(other_gpus.DriverError, match=words):
        other_gpus.read(str(library), "gone.so")


def test_a_process_has_the_form_that_nvml_gives_it() -> None:
    """pynvml declares NVML's structures."""
    ours, theirs = other_gpus._Process, pynvml.c_nvmlProcessInfo_v2_t
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    for name, *_ in ours._fields_:
        assert getattr(ours, name).offset == getattr(theirs, name).offset


def test_the_driver_says_whether_this_process_is_a_client_of_mps(tmp_path: Path) -> None:
    for option, answer in (("-DMPS=1", True), ("-DMPS=0", False), ("-DNO_DEVICE", None)):
        (tmp_path / option).mkdir()
        library = build(tmp_path / option / "libcuda.so", "cuda_driver.c", option)
        assert mps.is_used(0, str(library)) is answer
    assert mps.is_used(7, str(build(tmp_path / "libcuda.so", "cuda_driver.c"))) is None


def test_without_a_driver_nothing_is_known(tmp_path: Path) -> None:
    assert mps.is_used(0, str(tmp_path / "none.so")) is None
