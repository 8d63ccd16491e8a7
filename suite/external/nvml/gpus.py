"""Reads driver and GPUs: everything for a diagnosis, the few values that a record keeps, or live ones during a run.

NVML's answers are in the project's words and units.
"""

import ctypes
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import pynvml

from suite.errors import WorkerEnvironmentError
from suite.external.nvml.values import GpuReading, GpuState, NvmlFault, NvmlState
from suite.schema.record import Gpu

GB: Final = 1e9
MIG_UUID: Final = "MIG-"  # the UUID of an instance begins so
# nvmlClocksEventReasons: NVML's name -> ours.
_SLOWDOWNS: Final = {
    "nvmlClocksEventReasonGpuIdle": "idle",
    "nvmlClocksEventReasonApplicationsClocksSetting": "clocks_setting",
    "nvmlClocksEventReasonSwPowerCap": "power_cap",
    "nvmlClocksEventReasonHwSlowdown": "hardware_slowdown",
    "nvmlClocksEventReasonSyncBoost": "sync_boost",
    "nvmlClocksEventReasonSwThermalSlowdown": "thermal_software",
    "nvmlClocksEventReasonHwThermalSlowdown": "thermal_hardware",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "power_brake",
    "nvmlClocksEventReasonDisplayClockSetting": "display_clocks",
}
type Queries = Mapping[str, Callable[[object], Any]]
_FABRIC_STATES: Final = {
    pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED: "not_started",
    pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS: "in_progress",
    pynvml.NVML_GPU_FABRIC_STATE_COMPLETED: "completed",
}
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
_FAULTS: Final[Mapping[int, NvmlFault]] = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no_library",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "no_driver",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
}
_SM: Final = pynvml.NVML_CLOCK_SM
_MEMORY: Final = pynvml.NVML_CLOCK_MEM
_UNCORRECTED: Final = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
_UUID: Final = "GPU-"
_NUMBER: Final = re.compile("[0-9]{1,4}")  # NVML would read 2**32 as 0
# Just under a second, so that at 5 Hz every fifth sample has it. Reading the counter takes 4.1 ms of a core and all
# other live values 0.7 ms (an H200 in a virtual machine, driver 580.159.04, 2026-11-21). It misses nothing in between.
COUNT_EVERY_S: Final = 0.95


class Answers:
    """Asks NVML; a refused value is None, and ``refused`` has the first reason."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}

    def ask[T](self, name: str, query: Callable[[], T]) -> T | None:
        try:
            return query()
        except pynvml.NVMLError as error:
            self.refused.setdefault(name, str(error))
            return None


def compute_capability(handle: object) -> str:
    return "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle))


def _slowdowns(handle: object) -> tuple[str, ...]:
    active = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    words = {getattr(pynvml, name): word for name, word in _SLOWDOWNS.items()}
    rest = active & ~sum(words)
    return tuple(word for bit, word in words.items() if active & bit) + ((hex(rest),) if rest else ())


def _active_nvlinks(handle: object) -> int:
    states: list[int] = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(pynvml.nvmlDeviceGetNvLinkState(handle, link))
        except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotSupported):
            if not states:
                raise
            break  # the GPU has fewer
    return sum(states)


def _fabric(handle: object) -> str:
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    return _FABRIC_STATES.get(info.state, str(info.state))


def _mig(handle: object) -> bool:
    """Whether a GPU is divided. An instance, which CUDA_VISIBLE_DEVICES may name, is part of a divided GPU."""
    return pynvml.nvmlDeviceGetUUID(handle).startswith(MIG_UUID) or bool(pynvml.nvmlDeviceGetMigMode(handle)[0])


def _processes_memory_gb(handle: object) -> float | None:
    used = [process.usedGpuMemory for process in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)]
    return None if None in used else round(sum(used) / GB, 3)


def _ask(name: str, *arguments: int) -> Callable[[object], Any]:
    return lambda gpu: getattr(pynvml, name)(gpu, *arguments)


# Field of GpuState -> its query.
QUERIES: Final[Queries] = {
    "name": _ask("nvmlDeviceGetName"),
    "uuid": _ask("nvmlDeviceGetUUID"),
    "compute_capability": compute_capability,
    "memory_gb": lambda gpu: round(pynvml.nvmlDeviceGetMemoryInfo(gpu).total / GB, 3),
    "memory_used_gb": lambda gpu: round(pynvml.nvmlDeviceGetMemoryInfo(gpu).used / GB, 3),
    "sm_clock_mhz": _ask("nvmlDeviceGetClockInfo", _SM),
    "sm_clock_max_mhz": _ask("nvmlDeviceGetMaxClockInfo", _SM),
    "sm_clock_setting_mhz": _ask("nvmlDeviceGetApplicationsClock", _SM),
    "sm_clock_setting_default_mhz": _ask("nvmlDeviceGetDefaultApplicationsClock", _SM),
    "memory_clock_mhz": _ask("nvmlDeviceGetClockInfo", _MEMORY),
    "memory_clock_max_mhz": _ask("nvmlDeviceGetMaxClockInfo", _MEMORY),
    "slowdowns": _slowdowns,
    "power_limit_w": lambda gpu: pynvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000,
    "power_limit_default_w": lambda gpu: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) / 1000,
    "temperature_c": _ask("nvmlDeviceGetTemperatureV", pynvml.NVML_TEMPERATURE_GPU),
    "ecc": lambda gpu: bool(pynvml.nvmlDeviceGetEccMode(gpu)[0]),
    "ecc_after_restart": lambda gpu: bool(pynvml.nvmlDeviceGetEccMode(gpu)[1]),
    "ecc_default": lambda gpu: bool(pynvml.nvmlDeviceGetDefaultEccMode(gpu)[0]),
    "ecc_uncorrected_errors": _ask("nvmlDeviceGetTotalEccErrors", *_UNCORRECTED),
    "persistence": lambda gpu: bool(pynvml.nvmlDeviceGetPersistenceMode(gpu)),
    "mig": _mig,
    "pcie_generation": _ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie_generation_max": _ask("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie_width": _ask("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie_width_max": _ask("nvmlDeviceGetMaxPcieLinkWidth"),
    "nvlinks_active": _active_nvlinks,
    "fabric": _fabric,
    "compute_processes": lambda gpu: len(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu)),
    "compute_processes_memory_gb": _processes_memory_gb,
}

# Field of GpuReading -> its query. Each is fast enough to run several times a second.
LIVE_QUERIES: Final[Queries] = {
    **{
        name: QUERIES[name]
        for name in ("memory_used_gb", "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "slowdowns")
    },
    "power_w": lambda gpu: pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
}
# Field of GpuReading -> its query, which runs once a second.
COUNTERS: Final[Queries] = {
    "energy_j": lambda gpu: pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
}


@contextmanager
def _nvml() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def whole_uuids(names: Sequence[str]) -> tuple[str, ...]:
    """Complete the UUIDs in ``names``, of which CUDA_VISIBLE_DEVICES may have only the beginning.

    Names that NVML does not know stay unchanged: the container engine may be on another machine.
    """

    def whole(name: str) -> str:
        with suppress(pynvml.NVMLError):
            return str(pynvml.nvmlDeviceGetUUID(_handle_by_uuid(name)))
        return name

    if any(name.startswith(_UUID) for name in names):
        with suppress(pynvml.NVMLError), _nvml():
            return tuple(whole(name) if name.startswith(_UUID) else name for name in names)
    return tuple(names)


def visible_handles() -> Iterator[object]:
    """Yield devices by number, UUID or the beginning of one, and stop at the first unknown one, as CUDA does."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number) for number in range(pynvml.nvmlDeviceGetCount())] if visible is None else visible.split(",")
    for name in map(str.strip, names):
        try:
            if _NUMBER.fullmatch(name):
                yield pynvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                yield _handle_by_uuid(name)
        except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotFound):
            return


def _handle_by_uuid(name: str) -> object:
    """Find a GPU by the beginning of its UUID, as CUDA does; NVML accepts only whole UUIDs."""
    try:
        return pynvml.nvmlDeviceGetHandleByUUID(name)
    except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotFound):
        if not name.startswith(_UUID):
            raise
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        matches = [handle for handle in handles if pynvml.nvmlDeviceGetUUID(handle).startswith(name)]
        if len(matches) != 1:
            raise
        return matches[0]


def read_state() -> NvmlState:
    """Read driver and GPUs. Errors are part of the result."""
    try:
        with _nvml():
            handles = tuple(visible_handles())
            return NvmlState(
                driver_version=pynvml.nvmlSystemGetDriverVersion(),
                nvml_version=pynvml.nvmlSystemGetNVMLVersion().partition(".")[2],
                cuda_driver_version=_cuda_driver_version(),
                num_gpus=pynvml.nvmlDeviceGetCount(),
                gpus=tuple(_gpu_state(index, handle, handles) for index, handle in enumerate(handles)),
            )
    except pynvml.NVMLError as error:
        return NvmlState(fault=_FAULTS.get(error.value, "failed"), message=str(error))


def read_gpus() -> tuple[tuple[Gpu, ...], str | None, str | None]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves, in its order, the driver's version and its CUDA version.

    Raises:
        WorkerEnvironmentError: there is an NVIDIA driver that does not work.

    """
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return (), None, None
    is_open = False
    try:
        with _nvml():
            is_open = True
            gpus = tuple(_gpu(index, handle) for index, handle in enumerate(visible_handles()))
            return gpus, pynvml.nvmlSystemGetDriverVersion(), _cuda_driver_version()
    except pynvml.NVMLError as error:
        if not is_open and _FAULTS.get(error.value, "failed").startswith("no_"):
            return (), None, None
        # The driver has another version than its library, or a GPU is lost or forbidden.
        raise WorkerEnvironmentError(
            f"the NVIDIA driver does not answer: {error}. Repair it until nvidia-smi works (after a driver update:"
            " restart), or set CUDA_VISIBLE_DEVICES to nothing to use the CPU only."
        ) from error


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
    values: dict[str, Any] = {name: answers.ask(name, partial(query, handle)) for name, query in QUERIES.items()}
    pairs: dict[str, Any] = {
        name: tuple(
            "self" if number == index else answers.ask(f"{name}[{number}]", partial(query, handle, other))
            for number, other in enumerate(handles)
        )
        for name, query in (("links", _link), ("peer_access", _peer_access))
    }
    return GpuState(index=index, unanswered=answers.refused, **pairs, **values)


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


class LiveGpus:
    """Reads the first visible GPUs repeatedly while they work. It raises no error: ``notes`` says what failed."""

    def __init__(self, count: int) -> None:
        self._answers = Answers()
        self.notes = self._answers.refused  # what could not be read -> NVML's reason
        self.persistence: tuple[bool | None, ...] = ()  # mode of each GPU, read once: nobody sets it during a run
        self._handles: tuple[object, ...] = ()
        self._is_open = False
        self._counted_s = -math.inf  # when the energy counters were read
        if not count:
            return
        try:
            pynvml.nvmlInit()
            self._is_open = True
            self._handles = tuple(visible_handles())[:count]
        except pynvml.NVMLError as error:
            self.notes["GPUs"] = str(error)
            return
        if len(self._handles) < count:
            self.notes["GPUs"] = f"only {len(self._handles)} of {count} are visible"
        self.persistence = tuple(
            self._ask(index, "persistence", partial(QUERIES["persistence"], handle))
            for index, handle in enumerate(self._handles)
        )

    def read(self) -> tuple[GpuReading, ...]:
        """Return one reading of each GPU; about once a second it includes the energy counter."""
        now_s = time.monotonic()
        is_counting = now_s - self._counted_s >= COUNT_EVERY_S
        if is_counting:
            self._counted_s = now_s
        queries = {**LIVE_QUERIES, **COUNTERS} if is_counting else LIVE_QUERIES
        return tuple(self._reading(index, handle, queries) for index, handle in enumerate(self._handles))

    def _reading(self, index: int, handle: object, queries: Queries) -> GpuReading:
        utilisation = self._ask(index, "utilisation", partial(pynvml.nvmlDeviceGetUtilizationRates, handle))
        return GpuReading(
            index=index,
            sm_utilisation_percent=None if utilisation is None else utilisation.gpu,
            memory_utilisation_percent=None if utilisation is None else utilisation.memory,
            **{name: self._ask(index, name, partial(query, handle)) for name, query in queries.items()},
        )

    def _ask(self, index: int, name: str, query: Callable[[], Any]) -> Any:
        return self._answers.ask(f"GPU {index} {name}", query)

    def close(self) -> None:
        """Close NVML."""
        if self._is_open:
            self._handles, self._is_open = (), False
            pynvml.nvmlShutdown()
