"""A rank's settings and versions: what a reader needs to repeat the run or to explain a difference."""

import importlib.metadata
import os
import platform
from typing import Any

import torch

from tasks.rank import cuda_graph
from tasks.rank.context import RankContext
from tasks.rank.process_group import backend_of
from tasks.rank.simulation import Simulation

DISTRIBUTIONS = (
    "isaaclab", "torch", "newton", "warp-lang", "mujoco-warp", "mujoco", "rsl-rl-lib", "rl-games", "skrl", "numpy",
    "gymnasium", "ovphysx", "ovstage",
)  # fmt: skip


def capture(context: RankContext, running: Simulation) -> dict[str, Any]:
    """Return this rank's settings as scalars; the version of a package that is not installed is None."""
    from isaaclab.benchmark.capture import run_config_from_env_cfg

    device, ranks = context.device, context.ranks
    backends = run_config_from_env_cfg(running.env_cfg)
    unwrapped = running.env.unwrapped
    return {
        "seed": context.seed,
        "device": str(device),
        "gpu_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "backend": backend_of(device) if ranks.is_distributed else None,
        "torch_num_threads": torch.get_num_threads(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "cuda_matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        **cuda_graph.warp_settings(str(device)),
        "physics": backends.physics_backend,
        "renderer": backends.rendering_backend,
        "num_envs": int(unwrapped.num_envs),
        "physics_dt_s": float(running.env_cfg.sim.dt),
        "decimation": int(running.env_cfg.decimation),
        **_versions(device),
    }


def extensions() -> list[str]:
    """Names of installed distributions that register tasks of their own."""
    found = importlib.metadata.entry_points(group="isaaclab.tasks")
    return sorted({entry_point.dist.name for entry_point in found if entry_point.dist})


def _versions(device: torch.device) -> dict[str, str | None]:
    versions: dict[str, str | None] = {"versions.python": platform.python_version()}
    for name in (*DISTRIBUTIONS, *extensions()):
        try:
            versions[f"versions.{name}"] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[f"versions.{name}"] = None
    versions["versions.cuda"] = torch.version.cuda
    on_gpu = device.type == "cuda"
    versions["versions.nccl"] = ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None
    versions["versions.cudnn"] = str(torch.backends.cudnn.version()) if on_gpu else None
    return versions
