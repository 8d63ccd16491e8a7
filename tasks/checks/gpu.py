"""Checks of a rank's own GPU and of the others after training; none on a CPU. Imports no torch."""

from typing import Any

from suite.schema.record import CheckResult
from tasks.checks import other_gpus
from tasks.rank import cuda_graph
from tasks.rank.rank_log import RankLog


def look(device: str, *, own_gpu: int, env: Any, env_cfg: Any, log: RankLog) -> list[CheckResult]:
    """Record whether physics steps ran from a CUDA graph; judge that, and what this process has on other GPUs.

    ``env`` is the unwrapped environment, ``own_gpu`` the rank's GPU in CUDA's numbering.
    """
    state = cuda_graph.read(env.sim, env_cfg.sim.physics) if device.startswith("cuda") else None
    log.write("settings", settings={"cuda_graph": state and state.is_captured})
    if state is None:
        return []
    try:
        on_others = other_gpus.check(own_gpu, other_gpus.read())
    except other_gpus.DriverError as error:
        on_others = other_gpus.not_known(str(error))
    of_graph = cuda_graph.check(state, cuda_graph.warp_settings(device))
    return [on_others] if of_graph is None else [of_graph, on_others]
