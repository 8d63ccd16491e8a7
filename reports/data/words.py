"""What pages and commands call tasks, physics, sizes and configurations."""

from collections.abc import Mapping
from typing import Any, Final

from suite.files.wording import counted, slug
from suite.schema.record import LEARNING_SUFFIX, RULE_WORDS, WORKLOAD_WORDS, Case, Stack

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
PACKAGES: Final = {"isaaclab": "Isaac Lab", "newton": "Newton", "warp-lang": "Warp", "ovphysx": "PhysX"}


def configuration_name(row: Mapping[str, Any]) -> str:
    """A row of the table of runs in words: ``Ant, rl_games, 1,024 per GPU, 2 x H200``, with what sets it apart."""
    settings = variant_text(row)
    if row["packages"]:
        settings = packages_text(row["packages"]) + (", cold" if row["kernel_cache"] == "empty" else "")
    parts = (
        task_name(row["task"]),
        WORKLOAD_WORDS.get(row["workload"], row["library"]),
        "" if row["physics"] == "kitless" else physics_name(row["physics"]),
        size_text(row),
        hardware_text(row),
        trainings_text(row) if row["trainings_per_gpu"] > 1 else settings,
    )
    return ", ".join(part for part in parts if part)


def variant_text(row: Mapping[str, Any]) -> str:
    """``same steps``: the end of a configuration's id in words; empty if nothing sets it apart."""
    variant = f"-{row['variant']}".removesuffix(LEARNING_SUFFIX)
    return variant.replace("fixed_updates", RULE_WORDS["fixed_updates"]).replace("-", " ").strip()


def task_name(task: str) -> str:
    """A task's name without its framework: ``Isaac-Cartpole-Direct`` is ``Cartpole``."""
    return TASKS.get(task, task.removeprefix("Isaac-").removesuffix("-Direct").replace("-", " "))


def page_of_task(name: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{slug(name)}"


def ranks_text(case: Case) -> str:
    """``1 GPU``, ``4 GPUs``; on CPUs ``2 processes``."""
    return counted(case.world_size, "GPU" if case.device == "cuda" else "process")


def environments_text(number: int) -> str:
    return counted(number, "environment")


def size_of_training(row: Mapping[str, Any]) -> str:
    """``1,024 environments, 4 optimiser steps``: on one GPU, which decides the time of an iteration."""
    steps = counted(row["optimiser_steps"], "optimiser step")
    return f"{environments_text(row['environments_per_gpu'])}, {steps}"


def size_text(row: Mapping[str, Any]) -> str:
    """``1,024 per GPU``, ``8,192 in total``; of several trainings on a GPU what each has."""
    if row["scaling"] == "strong":
        return f"{row['size']:,} in total"
    alone = "per process" if row["device"] == "cpu" or row["only_learning"] else "per GPU"
    return f"{row['size']:,} {'per training' if row['trainings_per_gpu'] > 1 else alone}"


def hardware_text(row: Mapping[str, Any]) -> str:
    """``2 x H200``, and of several nodes their number; ``4 processes on 1 x H200`` if they share it."""
    shared = f"{counted(row['processes'], 'process')} on " if row["only_learning"] else ""
    nodes = counted(row["nodes"], "simulated node" if row["is_emulated"] else "node")
    return f"{shared}{row['gpus']} x {gpu_name(row)}" + (f", {nodes}" if row["nodes"] > 1 else "")


def gpu_name(row: Mapping[str, Any]) -> str:
    return (row["gpu_model"] or ("GPU" if row["device"] == "cuda" else "CPU")).removeprefix("NVIDIA ")


def physics_name(stack: Stack) -> str:
    return STACK_NAMES[stack].removesuffix(WITHOUT_ISAAC_SIM)


def trainings_text(row: Mapping[str, Any]) -> str:
    """``4 trainings with MPS``: what shares a GPU."""
    number = row["trainings_per_gpu"]
    return counted(number, "training") + (" with MPS" if row["mps"] and number > 1 else "")


def packages_text(packages: str) -> str:
    """``Newton 1.6.0, Warp 1.18.0``."""
    pairs = (package.partition("==") for package in packages.split())
    return ", ".join(f"{PACKAGES.get(name, name)} {version}" for name, _, version in pairs)


def versions_of(row: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the versions of packages that the first process of a run had, by the packages' names."""
    return dict(part.split("==", 1) for part in row["versions"].split())
