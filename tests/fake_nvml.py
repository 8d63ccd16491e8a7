"""A fake of pynvml's functions, which need a GPU, with answers as NVML documents them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

UUIDS = ("GPU-5a7f", "GPU-5b")


def refusal(code: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise pynvml.NVMLError(code)

    return refuse


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake NVML of a host with an H200 and a GPU that shares the host's memory; every other question is refused."""

    def by_index(index: int) -> int:
        if index > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def by_uuid(uuid: str) -> int:
        if uuid not in UUIDS:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return UUIDS.index(uuid)

    def memory(handle: int) -> SimpleNamespace:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=150_754_820_096, used=1_000_000_000)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.65.06",
        "nvmlSystemGetNVMLVersion": lambda: "13.580.65.06",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13020,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": by_index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetUUID": lambda handle: UUIDS[handle],
        "nvmlDeviceGetName": lambda handle: ("NVIDIA H200", "NVIDIA GB10")[handle],
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetCudaComputeCapability": lambda handle: ((9, 0), (12, 1))[handle],
    }
    for name in vars(pynvml):
        if name.startswith("nvmlDeviceGet"):
            monkeypatch.setattr(pynvml, name, refusal(pynvml.NVML_ERROR_NOT_SUPPORTED))
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def answer(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """Let the fake answer more questions, the same for every GPU."""
    for name, value in answers.items():
        monkeypatch.setattr(pynvml, name, lambda *_, value=value: value)
