"""The control ``collection``: TorchRL's collector alone, which steps the environments and keeps what they return."""

import itertools
from collections.abc import Callable
from typing import Any

import torch

from tasks.libraries.train_torchrl import environment
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation


def collect(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Collect rollouts with drawn actions.

    The collector has the arguments of Isaac Lab's loop. What it takes longer than steps alone is its own work, with the
    observations before a reset that TorchRL's backend asks for.
    """
    from torchrl.collectors import Collector

    case, timer = context.case, context.timer
    env = environment(context, simulation, clip_actions=settings["clip_actions"])
    collector = Collector(
        env,
        drawn_policy(context, env),
        trust_policy=True,
        frames_per_batch=case.frames_per_iteration,
        total_frames=case.frames_per_iteration * case.iterations,
        device=context.device,
        split_trajs=False,
        no_cuda_sync=context.device.type == "cuda",
    )
    batches = iter(collector)
    for _ in range(case.iterations):
        timer.begin()
        next(batches)
        timer.end_collection()
        timer.end()
        timer.write({})
    collector.shutdown()


def drawn_policy(context: RankContext, env: Any) -> Callable[[Any], Any]:
    """Return a policy that looks up its next actions, shape (num_envs, num_actions), those of a rollout in turn.

    They are drawn uniformly from -1 to 1 before the clock starts, as for steps alone.
    """
    drawn = torch.rand((context.case.num_steps_per_env, *env.action_spec.shape), device=context.device) * 2 - 1
    actions = itertools.cycle(drawn)
    return lambda data: data.set("action", next(actions))
