"""Checks each GPU by a table, and all together: whether they are there, alike, linked, and have RT cores.

A check without all its values from NVML never passes. ``gpus.toml`` lists which GPUs have RT cores, as neither NVML nor
CUDA reports that.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from suite.env_check.check import Fault, Feature, Judgement, Subject, parts
from suite.env_check.gpu.driver import NVOPTIX, DriverFacts, StackDrivers, kernel_version
from suite.env_check.probes.run import run_probe
from suite.external.nvml.values import GpuState, NvmlState
from suite.files.toml_file import NonEmptyTuple, TomlTable, read_toml
from suite.files.wording import counted

TIMEOUT_S: Final = 20.0
SHOW_GPUS: Final = "Unset CUDA_VISIBLE_DEVICES, or set it to the numbers or UUIDs that nvidia-smi -L prints."
ALIKE: Final = ("name", "memory_gb", "compute_capability", "sm_clock_max_mhz", "power_limit_w", "ecc", "mig")
LINK_FIELDS: Final = ("links", "peer_access", "nvlinks_active", "pcie_generation_max", "pcie_width")
GPUS_PATH: Final = Path(__file__).with_name("gpus.toml")
CLOCKS_SETTING: Final = "clocks_setting"
HARMLESS: Final = frozenset({"idle", "display_clocks", CLOCKS_SETTING})  # the clock setting has a check of its own


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
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
        answering = [gpu for gpu in state.gpus if all(getattr(gpu, field) is not None for field in self.fields)]
        found = by_value({gpu.index: self.describe(gpu) for gpu in answering})
        if any(map(self.is_faulty, answering)):
            return subject.faulty(Fault(word=self.fault, found=found, repair=self.repair, verdict=self.verdict))
        if not state.gpus:
            return subject.not_checked("no GPU")
        if len(answering) < len(state.gpus):
            gpu, field = next((gpu, name) for gpu in state.gpus for name in self.fields if getattr(gpu, name) is None)
            why = gpu.unanswered.get(field, "no value")
            return subject.not_checked(f"NVML does not report {field} of GPU {gpu.index}: {why}")
        return subject.ok(found)


def values_of(state: NvmlState, fields: Sequence[str]) -> dict[str, object]:
    """Return as evidence the index and the values of each GPU, and NVML's reason for each missing value."""

    def row(gpu: GpuState) -> dict[str, object]:
        refused = {name: reason for name, reason in gpu.unanswered.items() if name in fields}
        values: dict[str, object] = {"index": gpu.index, **{name: getattr(gpu, name) for name in fields}}
        return values | ({"unanswered": refused} if refused else {})

    return {"gpus": [row(gpu) for gpu in state.gpus]}


def by_value(described: Mapping[int, str]) -> str:
    """List each value once: ``"on"``, or ``"on (GPU 0, 1); off (GPU 2)"`` if GPUs differ."""
    gpus: dict[str, list[str]] = {}
    for index, value in described.items():
        gpus.setdefault(value, []).append(str(index))
    if len(gpus) == 1:
        return next(iter(gpus))
    return "; ".join(f"{value} (GPU {', '.join(indices)})" for value, indices in gpus.items())


def judge_compute_capability(state: NvmlState, drivers: StackDrivers) -> Judgement:
    minimum = drivers.minimum_compute_capability
    return GpuCheck(
        name="compute_capability",
        fields=("compute_capability",),
        optional=("name",),
        is_faulty=lambda gpu: parts(gpu.compute_capability or "0") < parts(minimum.version),
        describe=lambda gpu: gpu.compute_capability or "unknown",
        wanted=f"{minimum.version} or newer ({minimum.source})",
        verdict="failure",
        fault="compute_capability_too_old",
        repair="Hide the old GPUs with CUDA_VISIBLE_DEVICES, or use newer ones.",
    ).judge(state)


def judge_mig(state: NvmlState) -> Judgement:
    """Check that MIG is off: NCCL cannot connect MIG instances, and one instance is smaller than its GPU."""
    return GpuCheck(
        name="mig",
        fields=("mig",),
        is_faulty=lambda gpu: bool(gpu.mig),
        describe=lambda gpu: _on(gpu.mig),
        wanted="off",
        verdict="failure" if len(state.gpus) > 1 else "warning",
        fault="mig_enabled",
        repair="Turn it off with sudo nvidia-smi -mig 0, once nobody uses the GPUs.",
    ).judge(state)


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
    GpuCheck(
        name="other_processes",
        fields=("compute_processes",),
        optional=("compute_processes_memory_gb", "memory_used_gb"),
        is_faulty=lambda gpu: bool(gpu.compute_processes),
        describe=_processes,
        wanted="none: they share time and memory with what is measured",
        fault="gpu_in_use",
        repair="Wait for them or stop them (nvidia-smi lists them), or leave their GPUs out with CUDA_VISIBLE_DEVICES.",
    ),
    GpuCheck(
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
    GpuCheck(
        name="gpu_throttling",
        fields=("slowdowns",),
        optional=("temperature_c", "power_limit_w"),
        is_faulty=lambda gpu: bool(_throttling(gpu)),
        describe=lambda gpu: _throttling(gpu) or "none",
        wanted="no throttling",
        fault="gpu_throttled",
        repair="Look at nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: repair cooling or power supply.",
    ),
    GpuCheck(
        name="power_limit",
        fields=("power_limit_w", "power_limit_default_w"),
        is_faulty=lambda gpu: (gpu.power_limit_w or 0) < (gpu.power_limit_default_w or 0),
        describe=lambda gpu: f"{gpu.power_limit_w:.0f} W of {gpu.power_limit_default_w:.0f} W",
        wanted="the default limit or more",
        fault="power_limited",
        repair="Set the default with sudo nvidia-smi -pl WATTS, or keep the limit and say so in --host-label.",
    ),
    GpuCheck(  # ECC costs memory and bandwidth on some GPUs, so it should have the GPU's default
        name="ecc",
        fields=("ecc", "ecc_after_restart"),
        optional=("ecc_default",),
        is_faulty=lambda gpu: gpu.ecc != gpu.ecc_after_restart or gpu.ecc_default not in (None, gpu.ecc),
        describe=_ecc,
        wanted="as the GPU's default",
        fault="ecc_changed",
        repair="Set the default with sudo nvidia-smi -e 0 or -e 1 and restart, or say so in --host-label.",
    ),
    GpuCheck(
        name="ecc_errors",
        fields=("ecc_uncorrected_errors",),
        is_faulty=lambda gpu: bool(gpu.ecc_uncorrected_errors),
        describe=lambda gpu: f"{gpu.ecc_uncorrected_errors} uncorrected",
        wanted="0 uncorrected errors since the driver was loaded",
        verdict="failure",
        fault="ecc_errors",
        repair="Its memory failed: look at nvidia-smi -q -d ECC,ROW_REMAPPER, restart, replace it if it recurs.",
    ),
    GpuCheck(
        name="persistence",
        fields=("persistence",),
        is_faulty=lambda gpu: not gpu.persistence,
        describe=lambda gpu: _on(gpu.persistence),
        wanted="on",
        fault="persistence_off",
        repair="Start nvidia-persistenced, or run sudo nvidia-smi -pm 1: without it every process starts slower.",
    ),
    GpuCheck(  # the check ignores the generation, which falls when the link is idle
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
FABRIC: Final = GpuCheck(  # until NVSwitch's fabric is ready, CUDA does not start or NCCL has no NVLink
    name="fabric",
    feature="nccl",
    fields=("fabric",),
    is_faulty=lambda gpu: gpu.fabric in ("not_started", "in_progress"),
    describe=lambda gpu: gpu.fabric or "unknown",
    wanted="completed, or no fabric",
    fault="fabric_not_ready",
    repair="On the host: sudo systemctl start nvidia-fabricmanager; its version must be exactly the driver's.",
)


def read_nvml(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> NvmlState:
    """Ask NVML in a child process. If a broken driver hangs or aborts there, the state's ``fault`` says so."""
    run = run_probe("machine", "nvml", environ=environ, timeout_s=timeout_s)
    if run.end == "answered":
        return run.as_facts(NvmlState)
    last_words = run.stderr.strip().splitlines()[-1:]
    if run.end == "hung":
        return NvmlState(fault="hung", message=f"no answer in {run.wall_s:.0f} s")
    if run.end == "died":
        return NvmlState(fault="crashed", message=" ".join((f"ended by {run.signal}", *last_words)))
    return NvmlState(fault="failed", message=" ".join((f"exit code {run.exit_code}", *last_words)))


def judge_gpus_present(state: NvmlState, driver: DriverFacts) -> Judgement:
    """Check that at least one GPU is visible, and that NVML lists those that are on the PCI bus."""
    subject = Subject("1 GPU or more, and all that are on the PCI bus", state)
    listed, on_bus = state.num_gpus or 0, driver.num_own_gpus
    has_driver = kernel_version(driver, state) is not None or driver.container.is_wsl
    if state.fault and has_driver:
        return subject.not_checked(f"NVML does not answer: {state.message}")
    if has_driver and listed < on_bus:
        found = f"{counted(on_bus, 'NVIDIA GPU')} on the PCI bus, NVML lists {listed or 'none'}"
        faulty = subject.warning if state.gpus else subject.failure
        return faulty("gpus_not_initialised", found, driver.repair_of_dead_gpu)
    if state.gpus:
        names = by_value({gpu.index: _title(gpu) for gpu in state.gpus})
        return subject.ok(names if ";" in names else f"{len(state.gpus)} x {names}")
    if listed:
        return subject.failure("gpus_hidden", f"{listed} GPU(s), all hidden by CUDA_VISIBLE_DEVICES", SHOW_GPUS)
    if driver.num_pci_gpus:
        found = f"{counted(driver.num_pci_gpus, 'NVIDIA GPU')} on the PCI bus, but no driver or no device node here"
        return subject.not_checked(found)
    return subject.failure(
        "no_gpu",
        "no NVIDIA GPU",
        "Run with --device cpu, or use a machine with an NVIDIA GPU: with one GPU what needs one runs, with several"
        " the scaling too.",
    )


def _title(gpu: GpuState) -> str:
    name = gpu.name or "unnamed GPU"
    return name if gpu.memory_gb is None else f"{name} {gpu.memory_gb:.0f} GB"


def judge_gpus_alike(state: NvmlState) -> Judgement:
    """Check that the GPUs are alike: all ranks wait for the slowest GPU, so different ones give no scaling curve."""
    subject = Subject("GPUs of one model with the same settings", values_of(state, ALIKE))
    different = [field for field in ALIKE if len({getattr(gpu, field) for gpu in state.gpus}) > 1]
    if not state.gpus:
        return subject.not_checked("no GPU")
    if not different:
        return subject.ok("1 GPU" if len(state.gpus) == 1 else f"{len(state.gpus)} alike")
    return subject.warning(
        "gpus_differ",
        by_value({gpu.index: ", ".join(f"{field} {getattr(gpu, field)}" for field in different) for gpu in state.gpus}),
        "Use only alike GPUs (CUDA_VISIBLE_DEVICES), and give all the same settings with nvidia-smi.",
    )


def judge_gpu_links(state: NvmlState) -> Judgement:
    """Check that every pair of GPUs has the same kind of link: one slow link slows a whole ring of NCCL."""
    subject = Subject("the same kind of link between all GPUs, best NVLink", values_of(state, LINK_FIELDS))
    between = [link for gpu in state.gpus for number, link in enumerate(gpu.links) if number != gpu.index]
    kinds = sorted({link for link in between if link})
    if "nvlink" in kinds and len(kinds) > 1:
        return subject.warning(
            "nvlink_partial",
            _describe_links(state, kinds),
            "Use only GPUs that NVLink connects (nvidia-smi topo -m shows the matrix, CUDA_VISIBLE_DEVICES chooses).",
        )
    if kinds == ["nvlink"] and len({gpu.nvlinks_active for gpu in state.gpus}) > 1:
        return subject.warning(
            "nvlinks_differ",
            _describe_links(state, kinds),
            "Links are down: look at nvidia-smi nvlink --status and dmesg, then reset the GPUs or restart.",
        )
    if not state.gpus:
        return subject.not_checked("no GPU")
    if None in between:
        return subject.not_checked("NVML does not report how the GPUs are connected")
    return subject.ok(_describe_links(state, kinds))


def _describe_links(state: NvmlState, kinds: list[str]) -> str:
    if len(state.gpus) == 1:
        return "1 GPU, nothing to join"

    def nvlinks(gpu: GpuState) -> str:
        return f"{gpu.nvlinks_active} NVLinks active" if gpu.nvlinks_active is not None else "no NVLink"

    refused = sorted({word for gpu in state.gpus for word in gpu.peer_access if word not in (None, "self", "ok")})
    no_peer_access = f"; no peer access by NVML: {', '.join(refused)}" if refused else ""
    return f"{', '.join(kinds)}; {by_value({gpu.index: nvlinks(gpu) for gpu in state.gpus})}{no_peer_access}"


class Statement(TomlTable):
    rt_cores: bool
    source: Annotated[str, StringConstraints(min_length=1)]


class Capability(Statement):
    compute_capability: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+$")]


class Name(Statement):
    words: NonEmptyTuple[str]


class RtCoreTable(TomlTable):
    capability: NonEmptyTuple[Capability]
    name: NonEmptyTuple[Name]


@dataclass(frozen=True, kw_only=True)
class RtCores:
    """Evidence of ``rt_cores`` for one GPU."""

    index: int
    name: str | None
    compute_capability: str | None
    rt_cores: bool | None  # None: the table does not list the GPU
    source: str | None


@functools.cache
def rt_core_table() -> RtCoreTable:
    return read_toml(GPUS_PATH).validate(RtCoreTable)


def judge_rt_cores(state: NvmlState) -> Judgement:
    """Check that every GPU has RT cores, which RTX rendering needs."""
    gpus = tuple(map(_rt_cores, state.gpus))
    subject = Subject("RT cores, for the RTX renderer of Isaac Sim", {"gpus": gpus})
    if without := [gpu for gpu in gpus if gpu.rt_cores is False]:
        return subject.failure(
            "no_rt_cores",
            f"{_names(without)}: none ({without[0].source})",
            "Use an RTX GPU, L4, L40 or A10 for this stack, or stack kitless, whose renderer needs CUDA only.",
        )
    if unknown := [gpu for gpu in gpus if gpu.rt_cores is None]:
        return subject.not_checked(f"{_names(unknown)}: not in gpus.toml")
    if not gpus:
        return subject.not_checked("no GPU")
    return subject.ok(f"{_names(gpus)}: has them ({gpus[0].source})")


def judge_denoiser(driver: DriverFacts, state: NvmlState) -> Judgement:
    """Check that a container has nvoptix.bin: without it, the denoiser of Isaac Sim's renderer does not start."""
    gpus = tuple(map(_rt_cores, state.gpus))
    container, file = driver.container, f"/{NVOPTIX}"
    subject = Subject(f"{file}, in a container with RTX GPUs", {"gpus": gpus})
    if not any(gpu.rt_cores for gpu in gpus):
        return subject.not_checked("no GPU with RT cores")
    if driver.has_nvoptix or not container.is_container:
        return subject.ok(file if driver.has_nvoptix else "not in a container")
    mount = f"--bind {file}" if container.is_apptainer else f"docker run --volume {file}:{file}:ro"
    repair = f"Mount it from the host: {mount}. There it comes with the driver's GL packages."
    if not container.gives("graphics"):
        repair = container.repair_of("graphics", file)
    return subject.warning("no_denoiser_weights", f"no {file}", repair)


def _rt_cores(gpu: GpuState) -> RtCores:
    table = rt_core_table()

    def is_word(word: str, name: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name, re.IGNORECASE) is not None

    named: list[Statement] = [row for row in table.name for word in row.words if is_word(word, gpu.name or "")]
    able: list[Statement] = [row for row in table.capability if row.compute_capability == gpu.compute_capability]
    row = next(iter((*named, *able)), None)
    return RtCores(
        index=gpu.index,
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        rt_cores=row.rt_cores if row else None,
        source=row.source if row else None,
    )


def _names(gpus: Sequence[RtCores]) -> str:
    return ", ".join(dict.fromkeys(gpu.name or f"GPU {gpu.index}" for gpu in gpus))
