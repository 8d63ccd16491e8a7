"""What pages and commands call tasks, physics and sizes."""

from collections.abc import Mapping
from typing import Final

from suite.files.wording import counted, slug
from suite.schema.record import Case, Stack

TASKS: Final[Mapping[str, str]] = {
    "Isaac-Reorient-Cube-Shadow-Camera-Direct": "Shadow Hand with camera",
    "Isaac-Cartpole-Camera-Direct": "Cartpole with camera",
}
WITHOUT_ISAAC_SIM: Final = " (no Isaac Sim)"
STACK_NAMES: Final[Mapping[Stack, str]] = {
    "kitless": f"Newton{WITHOUT_ISAAC_SIM}",
    "ovphysx": f"PhysX{WITHOUT_ISAAC_SIM}",
    "isaacsim": "PhysX and RTX in Isaac Sim",
}


def task_name(task: str) -> str:
    """A task's name without its framework: ``Isaac-Cartpole-Direct`` is ``Cartpole``."""
    return TASKS.get(task, task.removeprefix("Isaac-").removesuffix("-Direct").replace("-", " "))


def page_of_task(name: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{slug(name)}"


def ranks_text(case: Case) -> str:
    """``1 GPU``, ``4 GPUs``; on CPUs ``2 ranks``."""
    return counted(case.world_size, "GPU" if case.device == "cuda" else "rank")


def environments_text(number: int) -> str:
    """``1 environment``, ``4,096 environments``."""
    return f"{number:,} environment{'' if number == 1 else 's'}"
