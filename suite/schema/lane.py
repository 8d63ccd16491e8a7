"""A share of a host, which one round has for itself."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lane:
    """What one round has for itself: whole GPUs, as CUDA counts those that are visible, and cores."""

    gpus: tuple[int, ...]  # none on a CPU
    cpus: tuple[int, ...]

    def __str__(self) -> str:
        numbers, what = (self.gpus, "GPU") if self.gpus else (self.cpus, "core")
        return f"{what}{'s' if len(numbers) > 1 else ''} {','.join(map(str, numbers))}"
