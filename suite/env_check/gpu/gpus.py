"""Checks that CUDA_VISIBLE_DEVICES shows at least one GPU, and that the GPUs are alike."""

from collections.abc import Mapping
from typing import Final

from pydantic import TypeAdapter

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.each_gpu import by_value, values_of
from suite.env_check.probes.run import ProbeRun, run_probe
from suite.external.nvml.values import GpuState, NvmlState

TIMEOUT_S: Final = 20.0
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


def judge_gpus_present(state: NvmlState, *, has_driver: bool) -> Judgement:
    """Check that at least one GPU is visible. ``has_driver``: the kernel driver is loaded."""
    subject = Subject("1 GPU or more", state)
    if state.gpus:
        names = by_value({gpu.index: _title(gpu) for gpu in state.gpus})
        return subject.ok(names if ";" in names else f"{len(state.gpus)} x {names}")
    if state.num_gpus:
        return subject.failure(
            "gpus_hidden",
            f"{state.num_gpus} GPU(s), all hidden by CUDA_VISIBLE_DEVICES",
            "Unset CUDA_VISIBLE_DEVICES, or set it to the numbers or UUIDs that nvidia-smi -L prints.",
        )
    if state.fault and has_driver:
        return subject.not_checked(f"NVML does not answer: {state.message}")
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
