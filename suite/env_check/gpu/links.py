"""How the GPUs of one machine are joined: NVLink, PCIe, and NVSwitch's fabric."""

from suite.env_check.check import Check
from suite.env_check.gpu.values import GpuValues, by_value, judge_each, values_of
from suite.external.nvml.values import GpuState, NvmlState

FIELDS = ("links", "peer_access", "nvlinks_active", "pcie_generation_max", "pcie_width")


def check_gpu_links(state: NvmlState) -> Check[GpuValues]:
    """Every pair of GPUs is joined in the same way, so that no ring of NCCL has a slow piece."""
    between = [link for gpu in state.gpus for number, link in enumerate(gpu.links) if number != gpu.index]
    kinds = sorted({link for link in between if link})
    counts = {gpu.nvlinks_active for gpu in state.gpus}
    fault = repair = None
    if "nvlink" in kinds and len(kinds) > 1:
        fault = "nvlink_partial"
        repair = "Use only GPUs that are joined (nvidia-smi topo -m shows the matrix, CUDA_VISIBLE_DEVICES chooses)."
    elif kinds == ["nvlink"] and len(counts) > 1:
        fault = "nvlinks_differ"
        repair = "Links are down: look at nvidia-smi nvlink --status and dmesg, then reset the GPUs or restart."
    is_known = bool(state.gpus) and None not in between
    found = _describe(state, kinds) if is_known or fault else "no GPU"
    if state.gpus and not is_known and not fault:
        found = "NVML does not tell how the GPUs are joined"
    return Check(
        name="gpu_links",
        feature="nccl",
        verdict="warning" if fault else "ok" if is_known else "not_checked",
        found=found,
        wanted="the same kind of link between all GPUs, best NVLink",
        fault=fault,
        repair=repair,
        evidence=values_of(state, FIELDS),
    )


def _describe(state: NvmlState, kinds: list[str]) -> str:
    if len(state.gpus) == 1:
        return "1 GPU, nothing to join"

    def nvlinks(gpu: GpuState) -> str:
        return f"{gpu.nvlinks_active} NVLinks active" if gpu.nvlinks_active is not None else "no NVLink"

    refused = sorted({word for gpu in state.gpus for word in gpu.peer_access if word not in (None, "self", "ok")})
    no_peer_access = f"; no peer access by NVML: {', '.join(refused)}" if refused else ""
    return f"{', '.join(kinds)}; {by_value({gpu.index: nvlinks(gpu) for gpu in state.gpus})}{no_peer_access}"


def check_fabric(state: NvmlState) -> Check[GpuValues]:
    """NVSwitch's fabric is set up: until then CUDA does not start, or NCCL has no NVLink."""
    return judge_each(
        state,
        name="fabric",
        feature="nccl",
        fields=("fabric",),
        is_faulty=lambda gpu: gpu.fabric in ("not_started", "in_progress"),
        describe=lambda gpu: gpu.fabric or "unknown",
        wanted="completed, or no fabric",
        fault="fabric_not_ready",
        repair="On the host: sudo systemctl start nvidia-fabricmanager, which must be of the driver's very version.",
    )
