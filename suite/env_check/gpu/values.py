"""Judging one value of every GPU: by one rule, with what NVML does not tell never taken for good."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from suite.env_check.check import Check, Feature, Verdict
from suite.external.nvml.values import GpuState, NvmlState


@dataclass(frozen=True, kw_only=True)
class GpuValues:
    """Of each GPU its index, the values that were looked at, and why NVML gave none."""

    gpus: tuple[Mapping[str, object], ...]


def values_of(state: NvmlState, fields: Sequence[str]) -> GpuValues:
    def row(gpu: GpuState) -> dict[str, object]:
        refused = {name: reason for name, reason in gpu.unanswered.items() if name in fields}
        values: dict[str, object] = {"index": gpu.index, **{name: getattr(gpu, name) for name in fields}}
        return values | ({"unanswered": refused} if refused else {})

    return GpuValues(gpus=tuple(row(gpu) for gpu in state.gpus))


def by_value(described: Mapping[int, str]) -> str:
    """Say each value once: ``"on"``, or ``"on (GPU 0, 1); off (GPU 2)"`` where they differ."""
    gpus: dict[str, list[str]] = {}
    for index, value in described.items():
        gpus.setdefault(value, []).append(str(index))
    if len(gpus) == 1:
        return next(iter(gpus))
    return "; ".join(f"{value} (GPU {', '.join(indices)})" for value, indices in gpus.items())


def judge_each(
    state: NvmlState,
    *,
    name: str,
    fields: Sequence[str],
    optional: Sequence[str] = (),
    is_faulty: Callable[[GpuState], bool],
    describe: Callable[[GpuState], str],
    wanted: str,
    fault: str,
    repair: str,
    verdict: Verdict = "warning",
    feature: Feature = "cuda",
) -> Check[GpuValues]:
    """Judge the GPUs that have all ``fields``; without a fault, one that lacks any makes it ``not_checked``."""
    evidence = values_of(state, (*fields, *optional))
    known = [gpu for gpu in state.gpus if all(getattr(gpu, field) is not None for field in fields)]
    if any(is_faulty(gpu) for gpu in known):
        found = by_value({gpu.index: describe(gpu) for gpu in known})
        return Check(name=name, feature=feature, verdict=verdict, found=found, wanted=wanted, fault=fault,
                     repair=repair, evidence=evidence)  # fmt: skip
    is_ok = bool(state.gpus) and len(known) == len(state.gpus)
    found = by_value({gpu.index: describe(gpu) for gpu in known}) if is_ok else _why_unknown(state, fields)
    return Check(name=name, feature=feature, verdict="ok" if is_ok else "not_checked", found=found, wanted=wanted,
                 evidence=evidence)  # fmt: skip


def _why_unknown(state: NvmlState, fields: Sequence[str]) -> str:
    if not state.gpus:
        return "no GPU"
    gpu, field = next((gpu, field) for gpu in state.gpus for field in fields if getattr(gpu, field) is None)
    return f"NVML does not tell {field} of GPU {gpu.index}: {gpu.unanswered.get(field, 'no value')}"
