"""Reads driver and GPUs once: everything for a diagnosis, or the few values that a record keeps."""

import os
from functools import partial
from typing import Final

import pynvml

from suite.errors import WorkerEnvironmentError
from suite.external.nvml.queries import GB, QUERIES, Answers, compute_capability
from suite.external.nvml.values import GpuState, NvmlFault, NvmlState
from suite.external.nvml.visible import visible_handles
from suite.schema.record import Gpu

_ANCESTORS: Final = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "same_board",
    pynvml.NVML_TOPOLOGY_SINGLE: "pcie_switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "pcie_switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "host_bridge",
    pynvml.NVML_TOPOLOGY_NODE: "numa_node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "across_numa_nodes",
}

_PEER_ACCESS: Final = {
    pynvml.NVML_P2P_STATUS_OK: "ok",
    pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED: "chipset_not_supported",
    pynvml.NVML_P2P_STATUS_GPU_NOT_SUPPORTED: "gpu_not_supported",
    pynvml.NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED: "topology_not_supported",
    pynvml.NVML_P2P_STATUS_DISABLED_BY_REGKEY: "disabled_by_driver_setting",
    pynvml.NVML_P2P_STATUS_NOT_SUPPORTED: "not_supported",
}


def read() -> NvmlState:
    """Read driver and GPUs. Errors are part of the result."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return NvmlState(fault=_fault(error), message=str(error))
    try:
        handles = tuple(visible_handles())
        return NvmlState(
            driver_version=pynvml.nvmlSystemGetDriverVersion(),
            nvml_version=pynvml.nvmlSystemGetNVMLVersion().partition(".")[2],
            cuda_driver_version=_cuda_driver_version(),
            num_gpus=pynvml.nvmlDeviceGetCount(),
            gpus=tuple(_gpu_state(index, handle, handles) for index, handle in enumerate(handles)),
        )
    except pynvml.NVMLError as error:
        return NvmlState(fault="failed", message=str(error))
    finally:
        pynvml.nvmlShutdown()


def read_gpus() -> tuple[tuple[Gpu, ...], str | None, str | None]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves, in its order, the driver's version and its CUDA version.

    Raises:
        WorkerEnvironmentError: there is an NVIDIA driver that does not work.

    """
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return (), None, None
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded, pynvml.NVMLError_NoPermission):
        return (), None, None
    except pynvml.NVMLError as error:
        raise _no_answer(error) from error
    try:
        gpus = tuple(_gpu(index, handle) for index, handle in enumerate(visible_handles()))
        return gpus, pynvml.nvmlSystemGetDriverVersion(), _cuda_driver_version()
    except pynvml.NVMLError as error:  # a GPU that is lost
        raise _no_answer(error) from error
    finally:
        pynvml.nvmlShutdown()


def _no_answer(error: pynvml.NVMLError) -> WorkerEnvironmentError:
    return WorkerEnvironmentError(
        f"the NVIDIA driver does not answer: {error}. Repair it until nvidia-smi works (after a driver update:"
        " restart), or set CUDA_VISIBLE_DEVICES to nothing to use the CPU only."
    )


def _fault(error: pynvml.NVMLError) -> NvmlFault:
    known: dict[int, NvmlFault] = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no_library",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "no_driver",
        pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
    }
    return known.get(error.value, "failed")


def _cuda_driver_version() -> str:
    version = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return f"{version // 1000}.{version % 1000 // 10}"


def _gpu(index: int, handle: object) -> Gpu:
    answers = Answers()
    memory = answers.ask("memory", lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).total)  # some GPUs use the host's
    return Gpu(
        index=index,
        name=pynvml.nvmlDeviceGetName(handle),
        memory_gb=None if memory is None else round(memory / GB, 1),
        compute_capability=answers.ask("compute_capability", lambda: compute_capability(handle)),
    )


def _gpu_state(index: int, handle: object, handles: tuple[object, ...]) -> GpuState:
    answers = Answers()
    values = {name: answers.ask(name, partial(query, handle)) for name, query in QUERIES.items()}
    links = tuple(
        "self" if number == index else answers.ask(f"links[{number}]", partial(_link, handle, other))
        for number, other in enumerate(handles)
    )
    peer_access = tuple(
        "self" if number == index else answers.ask(f"peer_access[{number}]", partial(_peer_access, handle, other))
        for number, other in enumerate(handles)
    )
    return GpuState(index=index, links=links, peer_access=peer_access, unanswered=answers.refused, **values)


def _peer_access(handle: object, other: object) -> str:
    status = pynvml.nvmlDeviceGetP2PStatus(handle, other, pynvml.NVML_P2P_CAPS_INDEX_WRITE)
    return _PEER_ACCESS.get(status, "unknown")


def _link(handle: object, other: object) -> str:
    try:
        by_nvlink = pynvml.nvmlDeviceGetP2PStatus(handle, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError_NotSupported:
        by_nvlink = pynvml.NVML_P2P_STATUS_NOT_SUPPORTED
    if by_nvlink == pynvml.NVML_P2P_STATUS_OK:
        return "nvlink"
    level = pynvml.nvmlDeviceGetTopologyCommonAncestor(handle, other)
    return _ANCESTORS.get(level, str(level))
