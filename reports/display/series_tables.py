"""Tables and words about the cases of a series. Pure."""

from collections.abc import Mapping
from typing import Final

from reports.analysis.series_kind import SeriesKind
from suite.files.wording import counted
from suite.schema.record import Case, Stack

WITHOUT_ISAAC_SIM: Final = " (no Isaac Sim)"
STACK_NAMES: Final[Mapping[Stack, str]] = {
    "kitless": f"Newton{WITHOUT_ISAAC_SIM}",
    "ovphysx": f"PhysX{WITHOUT_ISAAC_SIM}",
    "isaacsim": "PhysX and RTX in Isaac Sim",
}


def ranks_text(case: Case) -> str:
    """``1 GPU``, ``4 GPUs``; on CPUs ``2 ranks``."""
    return counted(case.world_size, "GPU" if case.device == "cuda" else "rank")


def series_title(case: Case, kind: SeriesKind = "scaling") -> str:
    """``Cartpole-Direct, 8,192 environments in all``: what a series is about, from one of its cases."""
    return f"{case.task.removeprefix('Isaac-')}, {series_subject(case, kind)}"


def series_subject(case: Case, kind: SeriesKind = "scaling") -> str:
    """``8,192 environments in all``: its title where it is clear which task is meant."""
    if case.workload == "all_reduce":
        return "all-reduce of the gradient alone"
    subjects = {
        "start_up": f"cold and warm starts of {counted(case.num_envs, 'environment')}",
        "tuned": "time to a reward, as shipped and tuned" if case.seed_per_round else "as shipped and tuned",
        "deterministic": "with deterministic settings and as shipped",
        "shared_gpu": "one training on a GPU and several",
        "versions": "with several versions of packages",
        "sweep": f"from few to many environments on {counted(case.world_size, 'rank')}{_without_training(case)}",
    }
    if kind in subjects:
        return subjects[kind]
    size = f"{case.num_envs_global:,} environments in all"
    if case.scaling == "weak":
        size = f"{environments_text(case.num_envs)} a rank"
    return f"{size}{_without_training(case)}"


def environments_text(number: int) -> str:
    """``1 environment``, ``4,096 environments``."""
    return f"{number:,} environment{'' if number == 1 else 's'}"


def _without_training(case: Case) -> str:
    """Return what a case does in place of training; empty where it trains."""
    what = {
        "environment_step": ", stepped without training",
        "rendering": ", rendering alone",
        "collection": ", collected by TorchRL without training",
        "collection_ray": ", collected by TorchRL in a process of Ray without training",
        "async_pipeline": ", simulated and learned from at the same time",
        "policy_rollout": ", a policy of LeRobot acting without training",
        "dataset_recording": ", recorded by LeRobot without training",
    }
    return what.get(case.workload, "")
