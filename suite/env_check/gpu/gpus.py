"""The GPUs that CUDA is left: there at all, able to run the stack, alike, and nobody else's."""

from collections.abc import Mapping
from typing import Final

from pydantic import TypeAdapter

from suite.env_check.check import Check, Verdict
from suite.env_check.gpu.driver_table import SourcedVersion, parts
from suite.env_check.gpu.values import GpuValues, by_value, judge_each, values_of
from suite.env_check.probes.run import ProbeRun, run_probe
from suite.external.nvml.values import GpuState, NvmlState

TIMEOUT_S: Final = 20.0
ALIKE: Final = ("name", "memory_gb", "compute_capability", "sm_clock_max_mhz", "power_limit_w", "ecc", "mig")


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> NvmlState:
    """Ask NVML in a child process: a broken driver may hang or abort, which is then the state's fault."""
    return state_of(run_probe("probes.gpu", environ=environ, timeout_s=timeout_s))


def state_of(run: ProbeRun) -> NvmlState:
    """Give what the child answered, or how it ended."""
    if run.end == "answered":
        return TypeAdapter(NvmlState).validate_python(run.answer)
    last_words = run.stderr.strip().splitlines()[-1:]
    if run.end == "hung":
        return NvmlState(fault="hung", message=f"no answer in {run.wall_s:.0f} s")
    if run.end == "died":
        return NvmlState(fault="crashed", message=" ".join((f"ended by {run.signal}", *last_words)))
    return NvmlState(fault="failed", message=" ".join((f"exit code {run.exit_code}", *last_words)))


def check_gpus_present(state: NvmlState, *, has_driver: bool) -> Check[NvmlState]:
    """At least one GPU is left by CUDA_VISIBLE_DEVICES. ``has_driver``: the kernel driver is there."""
    verdict: Verdict = "ok"
    fault: str | None = None
    repair: str | None = None
    if state.gpus:
        names = by_value({gpu.index: _title(gpu) for gpu in state.gpus})
        found = names if ";" in names else f"{len(state.gpus)} x {names}"
    elif state.num_gpus:
        verdict, fault = "failure", "gpus_hidden"
        found = f"{state.num_gpus} GPU(s), all hidden by CUDA_VISIBLE_DEVICES"
        repair = "Unset CUDA_VISIBLE_DEVICES, or set it to the numbers or UUIDs that nvidia-smi -L prints."
    elif state.fault and has_driver:
        verdict, found = "not_checked", f"NVML does not answer: {state.message}"
    else:
        verdict, fault, found = "failure", "no_gpu", "no NVIDIA GPU"
        repair = (
            "Run with --device cpu, or use a machine with an NVIDIA GPU: one adds the cuda cases of every matrix, more"
            " add the scaling over GPUs."
        )
    return Check(
        name="gpus_present",
        feature="cuda",
        verdict=verdict,
        found=found,
        wanted="1 GPU or more",
        fault=fault,
        repair=repair,
        evidence=state,
    )


def _title(gpu: GpuState) -> str:
    name = gpu.name or "unnamed GPU"
    return name if gpu.memory_gb is None else f"{name} {gpu.memory_gb:.0f} GB"


def check_compute_capability(state: NvmlState, minimum: SourcedVersion) -> Check[GpuValues]:
    return judge_each(
        state,
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


def check_gpus_alike(state: NvmlState) -> Check[GpuValues]:
    """Ranks wait for the slowest GPU, so a scaling curve over different ones says nothing."""
    different = [field for field in ALIKE if len({getattr(gpu, field) for gpu in state.gpus}) > 1]
    shown = different or ["name"]
    found = by_value({gpu.index: ", ".join(f"{field} {getattr(gpu, field)}" for field in shown) for gpu in state.gpus})
    if not different:
        found = "1 GPU" if len(state.gpus) == 1 else f"{len(state.gpus)} alike"
    return Check(
        name="gpus_alike",
        feature="nccl",
        verdict="not_checked" if not state.gpus else "warning" if different else "ok",
        found=found if state.gpus else "no GPU",
        wanted="GPUs of one model with the same settings",
        fault="gpus_differ" if different else None,
        repair="Use only alike GPUs (CUDA_VISIBLE_DEVICES), and give all the same settings with nvidia-smi."
        if different
        else None,
        evidence=values_of(state, ALIKE),
    )


def check_mig(state: NvmlState) -> Check[GpuValues]:
    """NCCL cannot join MIG instances; a single instance is a smaller GPU than its name says."""
    return judge_each(
        state,
        name="mig",
        fields=("mig",),
        is_faulty=lambda gpu: bool(gpu.mig),
        describe=lambda gpu: "on" if gpu.mig else "off",
        wanted="off",
        verdict="failure" if len(state.gpus) > 1 else "warning",
        fault="mig_enabled",
        repair="Turn it off with sudo nvidia-smi -mig 0, once nobody uses the GPUs.",
    )


def check_other_processes(state: NvmlState) -> Check[GpuValues]:
    return judge_each(
        state,
        name="other_processes",
        fields=("compute_processes",),
        optional=("compute_processes_memory_gb", "memory_used_gb"),
        is_faulty=lambda gpu: bool(gpu.compute_processes),
        describe=_processes,
        wanted="none: they share time and memory with what is measured",
        fault="gpu_in_use",
        repair="Wait for them or stop them (nvidia-smi lists them), or leave their GPUs out with CUDA_VISIBLE_DEVICES.",
    )


def _processes(gpu: GpuState) -> str:
    if not gpu.compute_processes:
        return "none"
    memory = gpu.compute_processes_memory_gb
    return f"{gpu.compute_processes} with {'unknown memory' if memory is None else f'{memory:.1f} GB'}"
