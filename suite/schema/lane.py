"""The share of a host that one round uses alone."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lane:
    """GPUs, in CUDA's numbering of the visible ones, and cores that one round uses alone."""

    gpus: tuple[int, ...]  # none on a CPU
    cpus: tuple[int, ...]

    def __str__(self) -> str:
        numbers, what = (self.gpus, "GPU") if self.gpus else (self.cpus, "core")
        return f"{what}{'s' if len(numbers) > 1 else ''} {','.join(map(str, numbers))}"
