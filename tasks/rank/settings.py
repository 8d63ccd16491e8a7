"""A rank's settings and versions: what a reader needs to repeat the run or to explain a difference."""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from typing import Any

import torch

from tasks.checks import gpu, physics
from tasks.rank import machine
from tasks.rank.context import RankContext, backend_of
from tasks.rank.simulation import Simulation

DISTRIBUTIONS = (
    "isaaclab", "torch", "newton", "warp-lang", "mujoco-warp", "mujoco", "rsl-rl-lib", "rl-games", "skrl",
    "jax", "flax", "stable-baselines3", "torchrl", "tensordict", "ray", "lerobot", "numpy", "gymnasium", "ovphysx",
    "ovstage",
)  # fmt: skip
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # torch reads the second if the first is unset


def capture(context: RankContext, running: Simulation) -> dict[str, Any]:
    """Return this rank's settings as scalars; the version of a package that is not installed is None."""
    from isaaclab.benchmark.capture import run_config_from_env_cfg

    device, ranks, cores = context.device, context.ranks, os.sched_getaffinity(0)
    on_gpu = device.type == "cuda"
    backends = run_config_from_env_cfg(running.env_cfg)
    unwrapped = running.env.unwrapped
    return {
        "seed": context.seed,
        "device": str(device),
        "gpu_name": torch.cuda.get_device_name(device) if on_gpu else None,
        "backend": backend_of(context.case) if ranks.is_distributed else None,
        "mps": gpu.shares_gpu_by_mps(context.gpu) if on_gpu else None,
        "torch_num_threads": torch.get_num_threads(),
        "cpus_allowed": len(cores),
        "cores_numa_nodes": machine.nodes_of_cores(cores),
        "gpu_numa_node": machine.node_of_gpu(torch.cuda.get_device_properties(device)) if on_gpu else None,
        # What allocates torch's GPU memory, and what its variable asks for, such as expandable segments.
        "torch_allocator_backend": torch.cuda.get_allocator_backend() if on_gpu else None,
        "torch_allocator_conf": next(filter(None, map(os.environ.get, ALLOCATOR_VARIABLES)), None) if on_gpu else None,
        "cuda_matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        **physics.warp_settings(str(device)),
        "physics": backends.physics_backend,
        "renderer": backends.rendering_backend,
        "num_envs": int(unwrapped.num_envs),
        "physics_dt_s": float(running.env_cfg.sim.dt),
        "decimation": int(running.env_cfg.decimation),
        **_versions(context.case.with_packages, on_gpu=on_gpu),
    }


def determinism() -> dict[str, str | bool | None]:
    """Return what torch, cuBLAS, cuDNN and Warp are set to now; a library may have changed it while it trained."""
    import warp

    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cublas_workspace_config": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "warp_deterministic": warp.config.deterministic.name.lower(),
    }


def _versions(with_packages: Sequence[str], *, on_gpu: bool) -> dict[str, str | None]:
    versions: dict[str, str | None] = {"versions.python": platform.python_version()}
    added = (package.partition("==")[0] for package in with_packages)
    own_tasks = importlib.metadata.entry_points(group="isaaclab.tasks")  # of whoever registers tasks of their own
    extensions = sorted({entry_point.dist.name for entry_point in own_tasks if entry_point.dist})
    for name in (*DISTRIBUTIONS, *extensions, *added):
        try:
            versions[f"versions.{name}"] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[f"versions.{name}"] = None
    versions["versions.cuda"] = torch.version.cuda
    versions["versions.nccl"] = ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None
    versions["versions.cudnn"] = str(torch.backends.cudnn.version()) if on_gpu else None
    return versions
