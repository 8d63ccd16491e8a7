"""What a deterministic case sets: all that ``isaaclab train --deterministic`` sets, in the same order.

That is the physics and Warp before the environment is made, and torch with cuBLAS and cuDNN once the library's runner
is made. JAX is asked for nothing, there as here. Upstream's own benchmark passes the same flag on, but sets nothing of
torch (Isaac Lab 3.0.0).
"""

import argparse
import os
from typing import Any

import torch

from tasks.rank.context import RankContext


def of_physics(args: argparse.Namespace, env_cfg: Any) -> None:
    """Ask the physics and Warp for it, if ``args.deterministic``; to be called before any environment is made."""
    from isaaclab_rl.entrypoints.common import request_determinism

    request_determinism(args, env_cfg)


def of_torch(context: RankContext) -> None:
    """Seed again and let torch use deterministic algorithms only, if the case asks for it.

    Upstream does so after it made the library's runner, whose creation would otherwise set cuDNN back. From then on an
    operation without a deterministic algorithm raises RuntimeError.
    """
    if context.case.deterministic:
        from isaaclab.utils.seed import configure_seed

        configure_seed(context.seed, torch_deterministic=True)


def in_use() -> dict[str, str | bool | None]:
    """Return what is set now, for the rank's settings."""
    import warp

    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cublas_workspace_config": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "warp_deterministic": warp.config.deterministic.name.lower(),
    }
