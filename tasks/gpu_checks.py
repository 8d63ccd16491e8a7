"""What a rank on a GPU finds of that GPU and the others after its training; nothing on a CPU."""

from suite.schema import CheckResult
from tasks import cuda_graph, other_gpus
from tasks.context import RankContext
from tasks.simulation import Simulation


def look(context: RankContext, running: Simulation) -> list[CheckResult]:
    """Record whether physics steps ran from a CUDA graph, and judge that and what is left on other GPUs."""
    device, state = str(context.device), None
    if context.device.type == "cuda":
        state = cuda_graph.read(running.env.unwrapped.sim, running.env_cfg.sim.physics)
    context.log.write("settings", settings={"cuda_graph": state and state.is_captured})
    if state is None:
        return []
    try:
        on_others = other_gpus.check(context.ranks.local_rank, other_gpus.read())
    except other_gpus.DriverError as error:
        on_others = other_gpus.not_known(str(error))
    of_graph = cuda_graph.check(state, cuda_graph.warp_settings(device))
    return [on_others] if of_graph is None else [of_graph, on_others]
