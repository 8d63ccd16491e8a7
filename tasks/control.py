"""Controls: parts of training alone, under the same clock, so that what a scaling curve loses has a name.

``environment_step``: rollouts of random actions, no policy and no learning. ``all_reduce``: the all-reduces of one
iteration's optimiser steps on a tensor of the gradient's size, nothing else. Both with rsl_rl's agent of the task.
The control ``timing_cost`` is not here: it trains as always, and ``tasks.timing`` leaves its marks out now and then.
"""

from typing import Any

import torch

from tasks import train_rsl_rl
from tasks.context import RankContext
from tasks.simulation import Simulation

AGENT_ENTRY_POINT = train_rsl_rl.AGENT_ENTRY_POINT
configure = train_rsl_rl.configure


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Run the case's iterations of its control; what is returned has no parameters, since nothing learns."""
    {"environment_step": step_environment, "all_reduce": reduce_gradients}[context.case.workload](
        context, simulation, settings
    )
    return torch.nn.Module()


def step_environment(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Step with actions drawn uniformly from -1 to 1, shape (num_envs, num_actions), made before the clock runs."""
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    case, timer = context.case, context.timer
    env = RslRlVecEnvWrapper(simulation.env, clip_actions=settings["clip_actions"])
    env.step = timer.environment_step.wrap(env.step)
    shape = (case.num_steps_per_env, case.num_envs, env.num_actions)
    actions = torch.rand(shape, device=context.device) * 2 - 1
    with torch.inference_mode():
        for _ in range(case.iterations):
            timer.begin()
            for action in actions:
                env.step(action)
            timer.end_collection()
            timer.end()
            timer.write({})


def reduce_gradients(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Sum a tensor of the agent's gradient size over all ranks, once for each optimiser step."""
    runner, _ = train_rsl_rl.make_runner(context, simulation, settings)
    size = sum(parameter.numel() for parameter in train_rsl_rl.trained(runner).parameters())
    gradient = torch.zeros(size, device=context.device)
    timer = context.timer
    for _ in range(context.case.iterations):
        timer.begin()
        timer.end_collection()
        for _ in range(context.case.optimiser_steps):
            torch.distributed.all_reduce(gradient)
        timer.end()
        timer.write({"control.all_reduce_bytes": float(gradient.numel() * gradient.element_size())})
