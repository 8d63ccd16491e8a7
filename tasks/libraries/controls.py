"""Controls: parts of training alone, under the same clock, so that what a scaling curve loses has a name.

``environment_step``: rollouts of random actions, no policy and no learning. ``rendering``: as many pictures of every
environment as a rollout has, no physics step, no policy, no learning. ``all_reduce``: the all-reduces of one
iteration's optimiser steps on a tensor of the gradient's size, nothing else. All with rsl_rl's agent of the task.
"""

from typing import Any

import torch

from tasks.checks import validity
from tasks.libraries import train_rsl_rl
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

AGENT_ENTRY_POINT = train_rsl_rl.AGENT_ENTRY_POINT
configure = train_rsl_rl.configure


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Run the case's iterations of its control; what is returned has no parameters, since nothing learns."""
    controls = {"environment_step": step_environment, "rendering": draw_pictures, "all_reduce": reduce_gradients}
    controls[context.case.workload](context, simulation, settings)
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


def draw_pictures(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Draw what every camera sees, once for each step of a rollout, between two poses of the scene's objects.

    A picture of an unmoved scene would be cheaper than one in training: renderers refit their scene only when it has
    changed. So objects (joints in a scene without) are moved to and fro by writing their pose, and Isaac Lab brings the
    kinematics up to date without a physics step. ``render_time_s`` holds what it holds in training: the scene's state
    brought to the renderer, the pictures, and their way into the cameras' buffers. The rest of ``iteration_time_s`` is
    the writing and the kinematics. A task's own use of its pictures (the hand's feature extractor) is in neither.
    """
    del settings
    case, timer = context.case, context.timer
    env = simulation.env.unwrapped
    views, everywhere = validity.views_of(env), range(case.num_envs)
    with torch.inference_mode():
        env.reset()
        for _ in range(case.iterations):
            timer.begin()
            for step in range(case.num_steps_per_env):
                validity.move(env, everywhere, share=-1.0 if step % 2 else 1.0)
                for view in views:
                    view.pictures(drawn_anew=True)
            timer.end_collection()
            timer.end()
            timer.write({"control.pictures": float(case.num_steps_per_env * case.num_envs * len(views))})


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
        timer.write({})
