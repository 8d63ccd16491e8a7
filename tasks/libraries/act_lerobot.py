"""The control ``policy_rollout``: a policy of LeRobot chooses every action of the rollouts from what it sees.

The policy is ACT with the weights of its seed. It looks at the task's own pictures and at the positions of the joints,
without which LeRobot's ACT does not run.
"""

import math
import os
import statistics
from collections.abc import Sequence
from typing import Any, Final

import torch

from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

OFFLINE: Final = {"HF_HUB_OFFLINE": "1"}  # LeRobot reads it when it is imported; nothing here is on a hub
PICTURE: Final = "observation.images.{}"  # LeRobot's name for the picture with this number, or of a camera
STATE: Final = "observation.state"  # and for what else is known of the robot
CHANNELS: Final = 3  # of a picture, as the policy's network wants them
RARE: Final = 0.99  # share of calls that are at most as long as the latency of rare ones


def act(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Run the case's rollouts, and return the policy. Every step asks it, for the actions of all environments at once.

    In marked iterations each call of it is timed.
    """
    del settings
    case, timer, env = context.case, context.timer, simulation.env
    observations, _ = env.reset()
    policy = seeded_policy(context, simulation)
    choose = timer.inference.wrap(policy.select_action)
    step = timer.environment_step.wrap(env.step)
    with torch.inference_mode():
        for _ in range(case.iterations):
            timer.begin()
            for _ in range(case.num_steps_per_env):
                observations, *_ = step(choose(pictures_in(observations) | {STATE: joints(env.unwrapped)}))
            timer.end_collection()
            timer.end()
            timer.write(latencies(timer.inference.calls_s))
    return policy


def seeded_policy(context: RankContext, simulation: Simulation) -> torch.nn.Module:
    """Return ACT for the task's pictures, joints and actions; its seed is that of the rank.

    It looks at every step (``n_action_steps``). By default it would play 100 actions from a queue that all environments
    share, and their episodes end at different steps. It has no weights of others, which are on a hub.
    """
    os.environ |= OFFLINE

    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy

    env = simulation.env.unwrapped
    channels, height, width = picture_size(env)
    picture = PolicyFeature(type=FeatureType.VISUAL, shape=(CHANNELS, height, width))
    state = PolicyFeature(type=FeatureType.STATE, shape=tuple(joints(env).shape[1:]))
    actions = PolicyFeature(type=FeatureType.ACTION, shape=tuple(env.single_action_space.shape))
    config = ACTConfig(
        device=str(context.device),
        input_features={STATE: state} | {PICTURE.format(number): picture for number in range(channels // CHANNELS)},
        output_features={"action": actions},
        pretrained_backbone_weights=None,
        n_action_steps=1,
    )
    torch.manual_seed(context.seed)
    policy = ACTPolicy(config).to(context.device).eval()
    context.log.write("settings", settings={"lerobot.policy_parameters": sum(p.numel() for p in policy.parameters())})
    return policy


def picture_size(env: Any) -> tuple[int, int, int]:
    """Return channels, height and width of what the task's policy observes.

    Raises:
        ValueError: it observes something else than pictures of three channels.
    """
    space = env.single_observation_space["policy"]
    if len(space.shape) != CHANNELS or space.shape[0] % CHANNELS:
        raise ValueError(
            f"its policy observes {tuple(space.shape)}; should be pictures of (channels, height, width) with a multiple"
            f" of {CHANNELS} channels"
        )
    channels, height, width = map(int, space.shape)
    return channels, height, width


def pictures_in(observations: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what the policy takes: pictures of shape (num_envs, 3, height, width), of which the task stacks some."""
    stacked = observations["policy"].split(CHANNELS, dim=1)
    return {PICTURE.format(number): picture for number, picture in enumerate(stacked)}


def joints(env: Any) -> torch.Tensor:
    """Return the positions of all joints [m or rad], shape (num_envs, joints)."""
    return torch.cat([asset.data.joint_pos.torch for asset in env.scene.articulations.values()], dim=1)


def latencies(calls_s: Sequence[float]) -> dict[str, float | None]:
    """Return the columns of an iteration [s]; None where its calls were not timed."""
    ordered = sorted(calls_s)
    rare_s = ordered[math.ceil(RARE * len(ordered)) - 1] if ordered else None
    return {
        "lerobot.latency_median_s": statistics.median(ordered) if ordered else None,
        "lerobot.latency_p99_s": rare_s,
    }
