"""Checks of a rank's own GPU and of the others after training; none on a CPU. Imports no torch.

The memory and time of other GPUs belong to other ranks. Isaac Lab and libraries have left contexts of every rank on
cuda:0 (isaac-sim/IsaacLab 2756, 5132). The CUDA driver tells whether the process has its primary context on a GPU, in
containers too, and the question creates none. NVML tells how much memory the process has there and sees other kinds of
contexts, but it uses the host's process ids: in a container the process may have another id, and NVML then does not
know it.
"""

import ctypes
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from suite.schema.record import CheckResult, CheckVerdict
from tasks.checks import physics

if TYPE_CHECKING:  # these import torch
    from tasks.rank.context import RankContext
    from tasks.rank.simulation import Simulation

OTHER_GPUS_CHECK: Final = "memory_on_other_gpus"
CONTEXT_ON_OTHER_GPU: Final = "context_on_other_gpu"
_SUCCESS: Final = 0
_INSUFFICIENT_SIZE: Final = 7  # NVML_ERROR_INSUFFICIENT_SIZE, with the count that there is
_UNKNOWN_MEMORY: Final = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
_SPARE: Final = 16  # more processes that may start between the two calls
_GB: Final = 1e9
MPS_ENABLED: Final = 133  # CU_DEVICE_ATTRIBUTE_MPS_ENABLED of cuda.h


def look(context: "RankContext", running: "Simulation") -> list[CheckResult]:
    """Record whether physics steps ran from a CUDA graph; judge that, and what this process has on other GPUs."""
    device, sim = str(context.device), running.env.unwrapped.sim
    state = physics.read_graph(sim, running.env_cfg.sim.physics) if device.startswith("cuda") else None
    context.log.write("settings", settings={"cuda_graph": state and state.is_captured})
    if state is None:
        return []
    try:
        others = check_other_gpus(context.gpu, read_gpus())
    except DriverError as error:
        others = _result("not_checked", str(error))
    graph = physics.check_graph(state, physics.warp_settings(device))
    return [others] if graph is None else [graph, others]


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of version 3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class DriverError(Exception):
    """The CUDA driver or NVML does not answer; the message names the call and its result."""


@dataclass(frozen=True, kw_only=True)
class OnGpu:
    """What this process has on one GPU."""

    index: int  # in CUDA's numbering
    has_context: bool  # the primary one, from the CUDA driver
    is_listed: bool | None  # among NVML's processes; None if NVML does not answer
    memory_gb: float | None  # from NVML


def read_gpus(cuda_library: str = "libcuda.so.1", nvml_library: str = "libnvidia-ml.so.1") -> tuple[OnGpu, ...]:
    """Read all GPUs that this process sees. Raises DriverError if the CUDA driver does not answer."""
    cuda, count = _load(cuda_library), ctypes.c_int()
    _call(cuda, "cuInit", 0)
    _call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    devices = [_device(cuda, index) for index in range(count.value)]
    used = _used_on(nvml_library, [name for name, _ in devices])
    return tuple(
        OnGpu(index=index, has_context=has_context, is_listed=is_listed, memory_gb=memory_gb)
        for index, ((_, has_context), (is_listed, memory_gb)) in enumerate(zip(devices, used, strict=True))
    )


def check_other_gpus(own_index: int, gpus: Sequence[OnGpu]) -> CheckResult:
    """Judge what ``read_gpus`` returned.

    A context on another rank's GPU is a warning and does not make the round invalid. It takes memory there, and time
    while it works, but the measured work is the work of the case, and what upstream leaves there is part of how it
    scales. Reports flag such rounds.
    """
    others = [gpu for gpu in gpus if gpu.index != own_index]
    if not others:
        return _result("not_checked", "it sees no GPU but its own")
    is_known = any(gpu.is_listed for gpu in gpus if gpu.index == own_index)
    unknown = "" if is_known else "; NVML does not know it by its process id, so memory there is not known"
    if not is_known:  # a process with this id on another GPU is another one
        others = [replace(gpu, is_listed=None, memory_gb=None) for gpu in others]
    if occupied := [gpu for gpu in others if gpu.has_context or gpu.is_listed]:
        return _result(
            "warning", f"it is on {', '.join(map(_described, occupied))}{unknown}", fault=CONTEXT_ON_OTHER_GPU
        )
    return _result("ok", f"no CUDA context on GPU {', '.join(str(gpu.index) for gpu in others)}{unknown}")


def _described(gpu: OnGpu) -> str:
    return f"GPU {gpu.index}" + ("" if gpu.memory_gb is None else f" with {gpu.memory_gb:.2f} GB")


def _result(verdict: CheckVerdict, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=OTHER_GPUS_CHECK, feature="gpus", verdict=verdict, found=found, fault=fault)


def _load(library: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        raise DriverError(str(error)) from error


def _call(library: ctypes.CDLL, name: str, *arguments: Any, accepted: Sequence[int] = (_SUCCESS,)) -> int:
    try:
        code = int(getattr(library, name)(*arguments))
    except AttributeError as error:
        raise DriverError(f"the driver has no {name}") from error
    if code not in accepted:
        raise DriverError(f"{name} returns {code}")
    return code


# ---- CUDA ----


def _device(cuda: ctypes.CDLL, index: int) -> tuple[str, bool]:
    """Return the UUID of a GPU, and whether this process has its primary context there."""
    device, raw, flags, is_active = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_uint(), ctypes.c_int()
    _call(cuda, "cuDeviceGet", ctypes.byref(device), index)
    _call(cuda, "cuDeviceGetUuid_v2", raw, device)
    _call(cuda, "cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(is_active))
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}", bool(is_active.value)


def shares_gpu_by_mps(index: int, library: str = "libcuda.so.1") -> bool | None:
    """Ask the CUDA driver about GPU ``index`` in CUDA's numbering; None if it does not answer, as before CUDA 12.4.

    The driver says whether contexts of this process are shared via MPS: a server that runs is not enough if this
    process was told of another folder for its pipes.
    """
    device, value = ctypes.c_int(), ctypes.c_int()
    try:
        cuda = _load(library)
        _call(cuda, "cuInit", 0)
        _call(cuda, "cuDeviceGet", ctypes.byref(device), index)
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(value), MPS_ENABLED, device)
    except DriverError:
        return None
    return bool(value.value)


# ---- NVML ----


def _used_on(library: str, uuids: Sequence[str]) -> list[tuple[bool | None, float | None]]:
    """Whether NVML lists this process on each GPU, and its memory there [GB]; None where it does not answer."""
    try:
        nvml = _load(library)
        _call(nvml, "nvmlInit_v2")
    except DriverError:
        return [(None, None)] * len(uuids)
    used = [_used(nvml, name) for name in uuids]
    with suppress(DriverError):
        _call(nvml, "nvmlShutdown")
    return used


def _used(nvml: ctypes.CDLL, name: str) -> tuple[bool | None, float | None]:
    handle, count, ask = ctypes.c_void_p(), ctypes.c_uint(0), "nvmlDeviceGetComputeRunningProcesses_v3"
    processes: Sequence[_Process] = ()
    try:
        _call(nvml, "nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(handle))
        if _call(nvml, ask, handle, ctypes.byref(count), None, accepted=(_SUCCESS, _INSUFFICIENT_SIZE)) != _SUCCESS:
            count.value += _SPARE
            processes = (_Process * count.value)()  # type: ignore[assignment]  # an array has what a sequence has
            _call(nvml, ask, handle, ctypes.byref(count), processes)
    except DriverError:
        return None, None
    own = [process.usedGpuMemory for process in processes[: count.value] if process.pid == os.getpid()]
    sizes = [size for size in own if size != _UNKNOWN_MEMORY]
    return bool(own), sum(sizes) / _GB if sizes else None
