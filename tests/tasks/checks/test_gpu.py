"""What a rank writes of its GPU and of the others, by stub libraries of the CUDA driver and NVML.

Not seen on real GPUs: whether Isaac Lab, torch, NCCL or Warp leave a context there, and which process ids NVML gives in
containers.
"""

import ctypes
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from suite.records.rank_file import rank_path, read_rank_file
from tasks.checks import gpu
from tasks.rank.rank_log import RankLog
from tests.fixtures.stand_ins.stub_drivers.build import build

OWN = 1  # the GPU of local rank 1


UNKNOWN = "; NVML does not know it by its process id, so memory there is not known"


@pytest.mark.parametrize(
    ("cuda", "nvml", "found"),
    [
        ("-DCONTEXT_ON=2", "-DON=2", "no CUDA context on GPU 0"),
        ("-DCONTEXT_ON=3", "-DON=3", "it is on GPU 0 with 0.52 GB"),
        ("-DCONTEXT_ON=3", "-DON=0", f"it is on GPU 0{UNKNOWN}"),
        ("-DCONTEXT_ON=3", "-DREFUSES", f"it is on GPU 0{UNKNOWN}"),
        ("-DCONTEXT_ON=3", None, f"it is on GPU 0{UNKNOWN}"),  # there is no NVML
        ("-DCONTEXT_ON=2", "-DREFUSES", f"no CUDA context on GPU 0{UNKNOWN}"),
        # NVML lists the id on GPU 0, and not on GPU 1, where this process surely is: that is another process.
        ("-DCONTEXT_ON=2", "-DON=1", f"no CUDA context on GPU 0{UNKNOWN}"),
    ],
)
def test_a_context_on_another_gpu_is_a_warning(cuda: str, nvml: str | None, found: str, tmp_path: Path) -> None:
    libcuda, libnvml = build(tmp_path / "libcuda.so", "cuda_driver.c", cuda), tmp_path / "libnvml.so"
    if nvml is not None:
        build(libnvml, "nvml.c", nvml)
    check = gpu.check_other_gpus(OWN, gpu.read_gpus(str(libcuda), str(libnvml)))
    judged = ("ok", None) if found.startswith("no ") else ("warning", "context_on_other_gpu")
    assert (check.name, check.verdict, check.fault, check.found) == ("memory_on_other_gpus", *judged, found)


@pytest.mark.parametrize(
    ("options", "source", "words"),
    [(("-DNO_DEVICE",), "cuda_driver.c", "cuInit returns 100"), ((), "library.c", "the driver has no cuInit")],
)
def test_a_driver_that_does_not_answer_is_not_known(
    options: tuple[str, ...], source: str, words: str, tmp_path: Path
) -> None:
    library = build(tmp_path / "libcuda.so", source, *options)
    with pytest.raises(gpu.DriverError, match=words):
        gpu.read_gpus(str(library), "gone.so")


def test_a_process_has_the_form_that_nvml_gives_it() -> None:
    """pynvml declares NVML's structures."""
    ours, theirs = gpu._Process, pynvml.c_nvmlProcessInfo_v2_t
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    for name, *_ in ours._fields_:
        assert getattr(ours, name).offset == getattr(theirs, name).offset


def test_the_driver_says_whether_this_process_is_a_client_of_mps(tmp_path: Path) -> None:
    for option, answer in (("-DMPS=1", True), ("-DMPS=0", False), ("-DNO_DEVICE", None)):
        (tmp_path / option).mkdir()
        library = build(tmp_path / option / "libcuda.so", "cuda_driver.c", option)
        assert gpu.shares_gpu_by_mps(0, str(library)) is answer
    assert gpu.shares_gpu_by_mps(7, str(build(tmp_path / "libcuda.so", "cuda_driver.c"))) is None
    assert gpu.shares_gpu_by_mps(0, str(tmp_path / "none.so")) is None


ON_BOTH = tuple(gpu.OnGpu(index=index, has_context=True, is_listed=True, memory_gb=0.5) for index in range(2))


def look(folder: Path, device: str, graph: object) -> tuple[dict[str, str], dict[str, Any]]:
    """Verdict by name of check, and the settings that were written."""
    env = SimpleNamespace(sim=SimpleNamespace(physics_manager=SimpleNamespace(_graph=graph)))
    env_cfg = SimpleNamespace(sim=SimpleNamespace(physics=SimpleNamespace(use_cuda_graph=True)))
    context: Any = SimpleNamespace(device=device, gpu=0, log=RankLog(folder, 0))
    running: Any = SimpleNamespace(env=SimpleNamespace(unwrapped=env), env_cfg=env_cfg)
    checks = gpu.look(context, running)
    context.log._stream.close()
    return {check.name: check.verdict for check in checks}, read_rank_file(0, rank_path(folder, 0)).settings


@pytest.mark.parametrize(("graph", "verdict"), [(object(), "ok"), (None, "failure")])
def test_a_rank_on_a_gpu_writes_and_judges(
    graph: object, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warp = SimpleNamespace(is_mempool_supported=lambda _: 1, is_mempool_enabled=lambda _: 0)
    monkeypatch.setitem(sys.modules, "warp", warp)
    monkeypatch.setattr(gpu, "read_gpus", lambda: ON_BOTH)
    verdicts, settings = look(tmp_path, "cuda:0", graph)
    assert verdicts == {"cuda_graph": verdict, "memory_on_other_gpus": "warning"}
    assert settings == {"cuda_graph": graph is not None}


def test_on_a_cpu_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    assert look(tmp_path, "cpu", None) == ({}, {"cuda_graph": None})
    (line,) = rank_path(tmp_path, 0).read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["event"] == "settings"  # said to be unknown, not left out
