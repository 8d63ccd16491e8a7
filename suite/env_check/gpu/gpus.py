"""Checks that CUDA_VISIBLE_DEVICES shows at least one GPU, and that the GPUs are alike."""

from collections.abc import Mapping
from typing import Final

from pydantic import TypeAdapter

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.driver import DriverFacts, kernel_version
from suite.env_check.gpu.each_gpu import by_value, values_of
from suite.env_check.probes.run import ProbeRun, run_probe
from suite.external.nvml.values import GpuState, NvmlState
from suite.files.wording import counted

TIMEOUT_S: Final = 20.0
SHOW_GPUS: Final = "Unset CUDA_VISIBLE_DEVICES, or set it to the numbers or UUIDs that nvidia-smi -L prints."
ALIKE: Final = ("name", "memory_gb", "compute_capability", "sm_clock_max_mhz", "power_limit_w", "ecc", "mig")


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> NvmlState:
    """Ask NVML in a child process. If a broken driver hangs or aborts there, the state's ``fault`` says so."""
    return state_of(run_probe("probes.gpu", environ=environ, timeout_s=timeout_s))


def state_of(run: ProbeRun) -> NvmlState:
    """Return the child's answer; without one, a state whose ``fault`` and ``message`` say how the child ended."""
    if run.end == "answered":
        return TypeAdapter(NvmlState).validate_python(run.answer)
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
    has_driver = kernel_version(driver, state) is not None or driver.is_wsl
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
        "Run with --device cpu, or use a machine with an NVIDIA GPU: one adds the cuda cases of every matrix, more"
        " add the scaling over GPUs.",
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
