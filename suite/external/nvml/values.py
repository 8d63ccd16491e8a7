"""State of driver and GPUs, as the other files of this folder read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# Why NVML does not answer. Callers that start it in a child process give the last two.
NvmlFault = Literal["no_library", "no_driver", "no_permission", "version_mismatch", "failed", "crashed", "hung"]


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """One GPU. A value that NVML refuses is None, and ``unanswered`` has NVML's reason."""

    index: int  # in CUDA's numbering, among those that CUDA_VISIBLE_DEVICES leaves
    name: str | None = None
    uuid: str | None = None
    compute_capability: str | None = None  # "9.0"
    memory_gb: float | None = None
    memory_used_gb: float | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    sm_clock_setting_mhz: int | None = None  # application clock
    sm_clock_setting_default_mhz: int | None = None
    memory_clock_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    slowdowns: tuple[str, ...] | None = None  # why the clocks are not higher now, see suite.external.nvml.gpus
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    temperature_c: int | None = None
    ecc: bool | None = None
    ecc_after_restart: bool | None = None
    ecc_default: bool | None = None
    ecc_uncorrected_errors: int | None = None  # since the driver was loaded
    persistence: bool | None = None
    mig: bool | None = None
    pcie_generation: int | None = None  # falls when idle
    pcie_generation_max: int | None = None
    pcie_width: int | None = None  # lanes
    pcie_width_max: int | None = None
    nvlinks_active: int | None = None
    fabric: str | None = None  # state of NVSwitch's fabric: "completed" is ready
    links: tuple[str | None, ...] = ()  # to each GPU of the list: "self", "nvlink", or what is between
    peer_access: tuple[str | None, ...] = ()  # for writes to each GPU of the list: "self", "ok", or why not
    compute_processes: int | None = None  # of any user
    compute_processes_memory_gb: float | None = None
    unanswered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """Values that change while a GPU works, at one moment. A value that NVML refuses is None."""

    index: int  # in CUDA's numbering
    sm_utilisation_percent: float | None = None  # share of the driver's last interval in which any kernel ran
    memory_utilisation_percent: float | None = None  # share of it in which memory was read or written
    memory_used_gb: float | None = None  # by all processes
    power_w: float | None = None  # since Ampere the driver's mean over one second (GA100: at the moment)
    energy_j: float | None = None  # since the driver was loaded; once a second
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    slowdowns: tuple[str, ...] | None = None  # why the clocks are not higher, see suite.external.nvml.gpus


@dataclass(frozen=True, kw_only=True)
class NvmlState:
    """NVML's state of driver and GPUs, or a fault with NVML's message."""

    fault: NvmlFault | None = None
    message: str | None = None
    driver_version: str | None = None  # of the kernel driver
    nvml_version: str | None = None  # of the library, without its leading CUDA version: "580.65.06"
    cuda_driver_version: str | None = None  # newest CUDA that the driver runs: "13.0"
    num_gpus: int | None = None  # of the machine or container, with those that CUDA_VISIBLE_DEVICES hides
    gpus: tuple[GpuState, ...] = ()  # those that CUDA_VISIBLE_DEVICES leaves, in its order
