"""Settings that make a GPU slower than its kind: clocks, throttling, power, ECC, persistence, PCIe width."""

from typing import Final

from suite.env_check.check import Check
from suite.env_check.gpu.values import GpuValues, judge_each
from suite.external.nvml.values import GpuState, NvmlState

CLOCKS_SETTING: Final = "clocks_setting"
HARMLESS: Final = frozenset({"idle", "display_clocks", CLOCKS_SETTING})  # the setting has a check of its own


def check_gpu_clocks(state: NvmlState) -> Check[GpuValues]:
    """Nobody has set the clocks lower than the GPU's own."""
    return judge_each(
        state,
        name="gpu_clocks",
        fields=("sm_clock_max_mhz", "slowdowns"),
        optional=(
            "sm_clock_mhz",
            "sm_clock_setting_mhz",
            "sm_clock_setting_default_mhz",
            "memory_clock_mhz",
            "memory_clock_max_mhz",
        ),
        is_faulty=_is_limited,
        describe=lambda gpu: f"{_setting(gpu)}up to {gpu.sm_clock_max_mhz} MHz",
        wanted="no clock setting below the default",
        fault="clocks_limited",
        repair="Reset them with sudo nvidia-smi -rgc and -rac, or keep them and say so in --host-label.",
    )


def _is_limited(gpu: GpuState) -> bool:
    setting, default = gpu.sm_clock_setting_mhz, gpu.sm_clock_setting_default_mhz
    is_lowered = setting is not None and default is not None and setting < default
    return is_lowered or CLOCKS_SETTING in (gpu.slowdowns or ())


def _setting(gpu: GpuState) -> str:
    return f"set to {gpu.sm_clock_setting_mhz or gpu.sm_clock_mhz} MHz of " if _is_limited(gpu) else ""


def check_gpu_throttling(state: NvmlState) -> Check[GpuValues]:
    """Neither heat nor power holds the clocks down at this moment."""
    return judge_each(
        state,
        name="gpu_throttling",
        fields=("slowdowns",),
        optional=("temperature_c", "power_limit_w"),
        is_faulty=lambda gpu: bool(set(gpu.slowdowns or ()) - HARMLESS),
        describe=lambda gpu: ", ".join(sorted(set(gpu.slowdowns or ()) - HARMLESS)) or "none",
        wanted="no throttling",
        fault="gpu_throttled",
        repair="Look at nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: let it cool, mend cooling or power supply.",
    )


def check_power_limit(state: NvmlState) -> Check[GpuValues]:
    return judge_each(
        state,
        name="power_limit",
        fields=("power_limit_w", "power_limit_default_w"),
        is_faulty=lambda gpu: (gpu.power_limit_w or 0) < (gpu.power_limit_default_w or 0),
        describe=lambda gpu: f"{gpu.power_limit_w:.0f} W of {gpu.power_limit_default_w:.0f} W",
        wanted="the default limit or more",
        fault="power_limited",
        repair="Set the default with sudo nvidia-smi -pl WATTS, or keep the limit and say so in --host-label.",
    )


def check_ecc(state: NvmlState) -> Check[GpuValues]:
    """ECC costs memory and bandwidth on some GPUs, so it is to be as such GPUs usually have it."""
    return judge_each(
        state,
        name="ecc",
        fields=("ecc", "ecc_after_restart"),
        optional=("ecc_default",),
        is_faulty=lambda gpu: gpu.ecc != gpu.ecc_after_restart or gpu.ecc_default not in (None, gpu.ecc),
        describe=lambda gpu: (
            _on(gpu.ecc)
            + ("" if gpu.ecc == gpu.ecc_after_restart else f", {_on(gpu.ecc_after_restart)} after a restart")
        ),
        wanted="as the GPU's default",
        fault="ecc_changed",
        repair="Set the default with sudo nvidia-smi -e 0 or -e 1 and restart, or say so in --host-label.",
    )


def check_ecc_errors(state: NvmlState) -> Check[GpuValues]:
    return judge_each(
        state,
        name="ecc_errors",
        fields=("ecc_uncorrected_errors",),
        is_faulty=lambda gpu: bool(gpu.ecc_uncorrected_errors),
        describe=lambda gpu: f"{gpu.ecc_uncorrected_errors} uncorrected",
        wanted="0 uncorrected errors since the driver was loaded",
        verdict="failure",
        fault="ecc_errors",
        repair="Its memory failed: look at nvidia-smi -q -d ECC,ROW_REMAPPER, restart, replace it if it recurs.",
    )


def check_persistence(state: NvmlState) -> Check[GpuValues]:
    """Without it the driver starts the GPU anew for every process."""
    return judge_each(
        state,
        name="persistence",
        fields=("persistence",),
        is_faulty=lambda gpu: not gpu.persistence,
        describe=lambda gpu: _on(gpu.persistence),
        wanted="on",
        fault="persistence_off",
        repair="Start nvidia-persistenced, or run sudo nvidia-smi -pm 1: without it every process starts slower.",
    )


def check_pcie_width(state: NvmlState) -> Check[GpuValues]:
    """The link has all its lanes. Its generation falls when idle and is not judged."""
    return judge_each(
        state,
        name="pcie_width",
        fields=("pcie_width", "pcie_width_max"),
        optional=("pcie_generation", "pcie_generation_max"),
        is_faulty=lambda gpu: (gpu.pcie_width or 0) < (gpu.pcie_width_max or 0),
        describe=lambda gpu: f"{gpu.pcie_width} of {gpu.pcie_width_max} lanes",
        wanted="all lanes",
        fault="pcie_width_reduced",
        repair="Some slots have fewer lanes; else reseat the GPU or its riser, and look at lspci -vv, LnkSta.",
    )


def _on(value: bool | None) -> str:
    return "on" if value else "off"
