"""Controls run single parts of training under the same clock, to show which part a scaling curve loses time in.

``environment_step``: rollouts of random actions, without policy and learning. ``rendering``: as many pictures of every
environment as a rollout has, without physics, policy and learning. ``all_reduce``: the all-reduces of one iteration's
optimiser steps on a tensor of the gradient's size. ``collection``: rollouts of random actions by TorchRL's collector.
``collection_ray``: the same in a process of Ray, with the way of each rollout to this one. ``policy_rollout``: rollouts
of a policy of LeRobot. ``dataset_recording``: rollouts of random actions that LeRobot writes to disk. All use the
task's agent of rsl_rl.
"""

from collections.abc import Callable
from typing import Any

import torch

from suite.schema.record import Workload
from tasks.checks import validity
from tasks.libraries import collect_torchrl, controls_lerobot, train_rsl_rl
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, use_deterministic_torch

AGENT_ENTRY_POINT = train_rsl_rl.AGENT_ENTRY_POINT
configure = train_rsl_rl.configure


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Run the case's iterations of its control. Nothing learns: the module is a policy that acted, or has nothing."""
    use_deterministic_torch(context)
    controls: dict[Workload, Callable[[RankContext, Simulation, dict[str, Any]], torch.nn.Module | None]] = {
        "environment_step": step_environment,
        "rendering": draw_pictures,
        "all_reduce": reduce_gradients,
        "collection": collect_torchrl.collect,
        "collection_ray": collect_torchrl.collect_by_ray,
        "policy_rollout": controls_lerobot.act,
        "dataset_recording": controls_lerobot.record,
    }
    return controls[context.case.workload](context, simulation, settings) or torch.nn.Module()


def step_environment(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Step with actions drawn uniformly from -1 to 1, shape (num_envs, num_actions), before the clock starts."""
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
    """Render every camera once for each step of a rollout, with the scene's objects in two poses by turns.

    Rendering an unmoved scene would be cheaper than in training: renderers refit their scene only after a change. So
    the poses of objects (of joints if there are none) are written to and fro, and Isaac Lab updates the kinematics
    without a physics step. ``render_time_s`` covers the same as in training: the transfer of the scene's state to the
    renderer, the rendering, and the copy into the cameras' buffers. The rest of ``iteration_time_s`` is the writing and
    the kinematics. Neither includes a task's own use of its pictures (the hand's feature extractor).
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
    """Sum a tensor of the size of the agent's gradient over all ranks, once for each optimiser step."""
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
