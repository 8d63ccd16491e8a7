"""A table of the checks that judge each GPU separately. A check without all its values from NVML never passes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.env_check.check import Fault, Feature, Judgement, Subject
from suite.env_check.gpu.driver_table import SourcedVersion, parts
from suite.external.nvml.values import GpuState, NvmlState

CLOCKS_SETTING: Final = "clocks_setting"
HARMLESS: Final = frozenset({"idle", "display_clocks", CLOCKS_SETTING})  # the clock setting has a check of its own


@dataclass(frozen=True, kw_only=True)
class GpuValues:
    """Evidence: the index and the values of each GPU, and NVML's reason for each missing value."""

    gpus: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, kw_only=True)
class EachGpu:
    """One check. Any faulty GPU makes it a fault; otherwise any GPU without all ``fields`` makes it not checked."""

    name: str
    feature: Feature = "cuda"
    fields: Sequence[str]  # fields of GpuState that the check needs
    optional: Sequence[str] = ()  # more fields, shown as evidence only
    is_faulty: Callable[[GpuState], bool]
    describe: Callable[[GpuState], str]
    wanted: str
    fault: str
    repair: str
    verdict: Literal["warning", "failure"] = "warning"

    def judge(self, state: NvmlState) -> Judgement:
        subject = Subject(self.wanted, values_of(state, (*self.fields, *self.optional)))
        known = [gpu for gpu in state.gpus if all(getattr(gpu, field) is not None for field in self.fields)]
        found = by_value({gpu.index: self.describe(gpu) for gpu in known})
        if any(map(self.is_faulty, known)):
            return subject.faulty(Fault(word=self.fault, found=found, repair=self.repair, verdict=self.verdict))
        if not state.gpus:
            return subject.not_checked("no GPU")
        if len(known) < len(state.gpus):
            return subject.not_checked(self._why_unknown(state))
        return subject.ok(found)

    def _why_unknown(self, state: NvmlState) -> str:
        gpu, field = next((gpu, field) for gpu in state.gpus for field in self.fields if getattr(gpu, field) is None)
        return f"NVML does not report {field} of GPU {gpu.index}: {gpu.unanswered.get(field, 'no value')}"


def values_of(state: NvmlState, fields: Sequence[str]) -> GpuValues:
    def row(gpu: GpuState) -> dict[str, object]:
        refused = {name: reason for name, reason in gpu.unanswered.items() if name in fields}
        values: dict[str, object] = {"index": gpu.index, **{name: getattr(gpu, name) for name in fields}}
        return values | ({"unanswered": refused} if refused else {})

    return GpuValues(gpus=tuple(row(gpu) for gpu in state.gpus))


def by_value(described: Mapping[int, str]) -> str:
    """List each value once: ``"on"``, or ``"on (GPU 0, 1); off (GPU 2)"`` if GPUs differ."""
    gpus: dict[str, list[str]] = {}
    for index, value in described.items():
        gpus.setdefault(value, []).append(str(index))
    if len(gpus) == 1:
        return next(iter(gpus))
    return "; ".join(f"{value} (GPU {', '.join(indices)})" for value, indices in gpus.items())


def compute_capability(minimum: SourcedVersion) -> EachGpu:
    return EachGpu(
        name="compute_capability",
        fields=("compute_capability",),
        optional=("name",),
        is_faulty=lambda gpu: parts(gpu.compute_capability or "0") < parts(minimum.version),
        describe=lambda gpu: gpu.compute_capability or "unknown",
        wanted=f"{minimum.version} or newer ({minimum.source})",
        verdict="failure",
        fault="compute_capability_too_old",
        repair="Hide the old GPUs with CUDA_VISIBLE_DEVICES, or use newer ones.",
    )


def mig(num_gpus: int) -> EachGpu:
    """Check that MIG is off: NCCL cannot connect MIG instances, and one instance is smaller than its GPU."""
    return EachGpu(
        name="mig",
        fields=("mig",),
        is_faulty=lambda gpu: bool(gpu.mig),
        describe=lambda gpu: _on(gpu.mig),
        wanted="off",
        verdict="failure" if num_gpus > 1 else "warning",
        fault="mig_enabled",
        repair="Turn it off with sudo nvidia-smi -mig 0, once nobody uses the GPUs.",
    )


def _is_limited(gpu: GpuState) -> bool:
    setting, default = gpu.sm_clock_setting_mhz, gpu.sm_clock_setting_default_mhz
    is_lowered = setting is not None and default is not None and setting < default
    return is_lowered or CLOCKS_SETTING in (gpu.slowdowns or ())


def _clocks(gpu: GpuState) -> str:
    setting = f"set to {gpu.sm_clock_setting_mhz or gpu.sm_clock_mhz} MHz of " if _is_limited(gpu) else ""
    return f"{setting}up to {gpu.sm_clock_max_mhz} MHz"


def _throttling(gpu: GpuState) -> str:
    return ", ".join(sorted(set(gpu.slowdowns or ()) - HARMLESS))


def _ecc(gpu: GpuState) -> str:
    return _on(gpu.ecc) + (
        "" if gpu.ecc == gpu.ecc_after_restart else f", {_on(gpu.ecc_after_restart)} after a restart"
    )


def _processes(gpu: GpuState) -> str:
    if not gpu.compute_processes:
        return "none"
    memory = gpu.compute_processes_memory_gb
    return f"{gpu.compute_processes} with {'unknown memory' if memory is None else f'{memory:.1f} GB'}"


def _on(value: bool | None) -> str:
    return "on" if value else "off"


SETTINGS: Final = (
    EachGpu(
        name="other_processes",
        fields=("compute_processes",),
        optional=("compute_processes_memory_gb", "memory_used_gb"),
        is_faulty=lambda gpu: bool(gpu.compute_processes),
        describe=_processes,
        wanted="none: they share time and memory with what is measured",
        fault="gpu_in_use",
        repair="Wait for them or stop them (nvidia-smi lists them), or leave their GPUs out with CUDA_VISIBLE_DEVICES.",
    ),
    EachGpu(
        name="gpu_clocks",
        fields=("sm_clock_max_mhz", "slowdowns"),
        optional=(
            "sm_clock_mhz", "sm_clock_setting_mhz", "sm_clock_setting_default_mhz", "memory_clock_mhz",
            "memory_clock_max_mhz",
        ),
        is_faulty=_is_limited,
        describe=_clocks,
        wanted="no clock setting below the default",
        fault="clocks_limited",
        repair="Reset them with sudo nvidia-smi -rgc and -rac, or keep them and say so in --host-label.",
    ),
    EachGpu(
        name="gpu_throttling",
        fields=("slowdowns",),
        optional=("temperature_c", "power_limit_w"),
        is_faulty=lambda gpu: bool(_throttling(gpu)),
        describe=lambda gpu: _throttling(gpu) or "none",
        wanted="no throttling",
        fault="gpu_throttled",
        repair="Look at nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: repair cooling or power supply.",
    ),
    EachGpu(
        name="power_limit",
        fields=("power_limit_w", "power_limit_default_w"),
        is_faulty=lambda gpu: (gpu.power_limit_w or 0) < (gpu.power_limit_default_w or 0),
        describe=lambda gpu: f"{gpu.power_limit_w:.0f} W of {gpu.power_limit_default_w:.0f} W",
        wanted="the default limit or more",
        fault="power_limited",
        repair="Set the default with sudo nvidia-smi -pl WATTS, or keep the limit and say so in --host-label.",
    ),
    EachGpu(  # ECC costs memory and bandwidth on some GPUs, so it should have the GPU's default
        name="ecc",
        fields=("ecc", "ecc_after_restart"),
        optional=("ecc_default",),
        is_faulty=lambda gpu: gpu.ecc != gpu.ecc_after_restart or gpu.ecc_default not in (None, gpu.ecc),
        describe=_ecc,
        wanted="as the GPU's default",
        fault="ecc_changed",
        repair="Set the default with sudo nvidia-smi -e 0 or -e 1 and restart, or say so in --host-label.",
    ),
    EachGpu(
        name="ecc_errors",
        fields=("ecc_uncorrected_errors",),
        is_faulty=lambda gpu: bool(gpu.ecc_uncorrected_errors),
        describe=lambda gpu: f"{gpu.ecc_uncorrected_errors} uncorrected",
        wanted="0 uncorrected errors since the driver was loaded",
        verdict="failure",
        fault="ecc_errors",
        repair="Its memory failed: look at nvidia-smi -q -d ECC,ROW_REMAPPER, restart, replace it if it recurs.",
    ),
    EachGpu(
        name="persistence",
        fields=("persistence",),
        is_faulty=lambda gpu: not gpu.persistence,
        describe=lambda gpu: _on(gpu.persistence),
        wanted="on",
        fault="persistence_off",
        repair="Start nvidia-persistenced, or run sudo nvidia-smi -pm 1: without it every process starts slower.",
    ),
    EachGpu(  # the check ignores the generation, which falls when the link is idle
        name="pcie_width",
        fields=("pcie_width", "pcie_width_max"),
        optional=("pcie_generation", "pcie_generation_max"),
        is_faulty=lambda gpu: (gpu.pcie_width or 0) < (gpu.pcie_width_max or 0),
        describe=lambda gpu: f"{gpu.pcie_width} of {gpu.pcie_width_max} lanes",
        wanted="all lanes",
        fault="pcie_width_reduced",
        repair="Some slots have fewer lanes; else reseat the GPU or its riser, and look at lspci -vv, LnkSta.",
    ),
)  # fmt: skip
FABRIC: Final = EachGpu(  # until NVSwitch's fabric is ready, CUDA does not start or NCCL has no NVLink
    name="fabric",
    feature="nccl",
    fields=("fabric",),
    is_faulty=lambda gpu: gpu.fabric in ("not_started", "in_progress"),
    describe=lambda gpu: gpu.fabric or "unknown",
    wanted="completed, or no fabric",
    fault="fabric_not_ready",
    repair="On the host: sudo systemctl start nvidia-fabricmanager; its version must be exactly the driver's.",
)
