"""Checks how the GPUs of one machine are connected: by NVLink or over PCIe."""

from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.each_gpu import by_value, values_of
from suite.external.nvml.values import GpuState, NvmlState

FIELDS: Final = ("links", "peer_access", "nvlinks_active", "pcie_generation_max", "pcie_width")


def judge_gpu_links(state: NvmlState) -> Judgement:
    """Check that every pair of GPUs has the same kind of link: one slow link slows a whole ring of NCCL."""
    subject = Subject("the same kind of link between all GPUs, best NVLink", values_of(state, FIELDS))
    between = [link for gpu in state.gpus for number, link in enumerate(gpu.links) if number != gpu.index]
    kinds = sorted({link for link in between if link})
    if "nvlink" in kinds and len(kinds) > 1:
        return subject.warning(
            "nvlink_partial",
            _describe(state, kinds),
            "Use only GPUs that NVLink connects (nvidia-smi topo -m shows the matrix, CUDA_VISIBLE_DEVICES chooses).",
        )
    if kinds == ["nvlink"] and len({gpu.nvlinks_active for gpu in state.gpus}) > 1:
        return subject.warning(
            "nvlinks_differ",
            _describe(state, kinds),
            "Links are down: look at nvidia-smi nvlink --status and dmesg, then reset the GPUs or restart.",
        )
    if not state.gpus:
        return subject.not_checked("no GPU")
    if None in between:
        return subject.not_checked("NVML does not report how the GPUs are connected")
    return subject.ok(_describe(state, kinds))


def _describe(state: NvmlState, kinds: list[str]) -> str:
    if len(state.gpus) == 1:
        return "1 GPU, nothing to join"

    def nvlinks(gpu: GpuState) -> str:
        return f"{gpu.nvlinks_active} NVLinks active" if gpu.nvlinks_active is not None else "no NVLink"

    refused = sorted({word for gpu in state.gpus for word in gpu.peer_access if word not in (None, "self", "ok")})
    no_peer_access = f"; no peer access by NVML: {', '.join(refused)}" if refused else ""
    return f"{', '.join(kinds)}; {by_value({gpu.index: nvlinks(gpu) for gpu in state.gpus})}{no_peer_access}"
