"""Queries of one GPU, with NVML's answers in the project's words and units."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

import pynvml

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


class Answers:
    """Asks NVML; a refused value is None, and ``refused`` has the reason."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}

    def ask[T](self, name: str, query: Callable[[], T]) -> T | None:
        try:
            return query()
        except pynvml.NVMLError as error:
            self.refused[name] = str(error)
            return None


def compute_capability(handle: object) -> str:
    return "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle))


def _slowdowns(handle: object) -> tuple[str, ...]:
    active = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    known = {getattr(pynvml, name): word for name, word in _SLOWDOWNS.items()}
    rest = active & ~sum(known)
    return tuple(word for bit, word in known.items() if active & bit) + ((hex(rest),) if rest else ())


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


_SM: Final = pynvml.NVML_CLOCK_SM
_MEMORY: Final = pynvml.NVML_CLOCK_MEM
_UNCORRECTED: Final = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)

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
