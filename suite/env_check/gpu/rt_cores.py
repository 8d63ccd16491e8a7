"""Checks with ``gpus.toml`` that the GPUs have RT cores, and that a container has the weights of OptiX' denoiser.

Neither NVML nor CUDA reports RT cores.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import StringConstraints

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.driver import NVOPTIX, DriverFacts
from suite.external.nvml.values import GpuState, NvmlState
from suite.files.toml_file import NonEmptyTuple, TomlTable, read_toml

GPUS_PATH: Final = Path(__file__).with_name("gpus.toml")


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


@dataclass(frozen=True, kw_only=True)
class RtCoresOfAll:
    gpus: tuple[RtCores, ...]


def read_table(path: Path = GPUS_PATH) -> RtCoreTable:
    """Read the table. Raises MatrixError with every problem of the file."""
    return read_toml(path).validate(RtCoreTable)


def judge_rt_cores(state: NvmlState, table: RtCoreTable) -> Judgement:
    """Check that every GPU has RT cores, which RTX rendering needs."""
    gpus = tuple(_rt_cores(gpu, table) for gpu in state.gpus)
    subject = Subject("RT cores, for the RTX renderer of Isaac Sim", RtCoresOfAll(gpus=gpus))
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


def judge_denoiser(driver: DriverFacts, state: NvmlState, table: RtCoreTable) -> Judgement:
    """Check that a container has nvoptix.bin: without it, the denoiser of Isaac Sim's renderer does not start."""
    gpus = tuple(_rt_cores(gpu, table) for gpu in state.gpus)
    container, file = driver.container, f"/{NVOPTIX}"
    subject = Subject(f"{file}, in a container with RTX GPUs", RtCoresOfAll(gpus=gpus))
    if not any(gpu.rt_cores for gpu in gpus):
        return subject.not_checked("no GPU with RT cores")
    if driver.has_nvoptix or not container.is_container:
        return subject.ok(file if driver.has_nvoptix else "not in a container")
    mount = f"--bind {file}" if container.is_apptainer else f"docker run --volume {file}:{file}:ro"
    repair = f"Mount it from the host: {mount}. There it comes with the driver's GL packages."
    if not container.gives("graphics"):
        repair = container.repair_of("graphics", file)
    return subject.warning("no_denoiser_weights", f"no {file}", repair)


def _rt_cores(gpu: GpuState, table: RtCoreTable) -> RtCores:
    named: list[Statement] = [row for row in table.name for word in row.words if _has_word(gpu.name or "", word)]
    able: list[Statement] = [row for row in table.capability if row.compute_capability == gpu.compute_capability]
    row = next(iter((*named, *able)), None)
    return RtCores(
        index=gpu.index,
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        rt_cores=row.rt_cores if row else None,
        source=row.source if row else None,
    )


def _has_word(name: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name, re.IGNORECASE) is not None


def _names(gpus: Sequence[RtCores]) -> str:
    return ", ".join(dict.fromkeys(gpu.name or f"GPU {gpu.index}" for gpu in gpus))
