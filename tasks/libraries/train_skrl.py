"""Trains with skrl 2.1 under labscale's clock: its sequential trainer, with the rollout and the update timed."""

import functools
import statistics
from collections.abc import Callable
from typing import Any

import torch

from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_mean, use_deterministic_torch

AGENT_ENTRY_POINT = "skrl_cfg_entry_point"


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these as the library will read them."""
    agent_cfg: dict[str, Any] = simulation.agent_cfg
    agent_cfg["seed"] = context.seed
    agent_cfg["trainer"]["timesteps"] = context.case.iterations * context.case.num_steps_per_env
    agent_cfg["trainer"]["close_environment_at_exit"] = False
    agent_cfg["agent"]["experiment"]["directory"] = context.library_dir
    agent_cfg["agent"]["experiment"]["experiment_name"] = "skrl"
    return agent_cfg


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's rollouts with their updates and return the trained models."""
    import skrl
    from isaaclab_rl.skrl import SkrlVecEnvWrapper
    from skrl.utils.runner.torch import Runner

    skrl.config.torch.device = str(context.device)
    env = SkrlVecEnvWrapper(simulation.env, ml_framework="torch")
    runner = Runner(env, settings)
    use_deterministic_torch(context)
    attach(runner.agent, env, context)
    runner.run()
    return torch.nn.ModuleList([model for model in runner.agent.models.values() if model is not None])


def attach(agent: Any, env: Any, context: RankContext, finish: Callable[[], object] = lambda: None) -> None:
    """Time skrl's loop: ``post_interaction`` of a rollout's last step updates, ``pre_interaction`` starts a rollout.

    ``finish`` waits for an update that does not run on torch's device stream.
    """
    timer, num_steps_per_env = context.timer, context.case.num_steps_per_env
    env.step = timer.environment_step.wrap(env.step)
    agent.act = timer.inference.wrap(agent.act)
    pre_interaction, post_interaction = agent.pre_interaction, agent.post_interaction

    @functools.wraps(pre_interaction)
    def timed_pre(*, timestep: int, timesteps: int) -> None:
        if timestep % num_steps_per_env == 0:
            timer.begin()
        pre_interaction(timestep=timestep, timesteps=timesteps)

    @functools.wraps(post_interaction)
    def timed_post(*, timestep: int, timesteps: int) -> None:
        at_boundary = (timestep + 1) % num_steps_per_env == 0
        # post_interaction may write out and clear what it tracked
        learning = _learning(agent.tracking_data) if at_boundary else {}
        if at_boundary:
            timer.end_collection()
        post_interaction(timestep=timestep, timesteps=timesteps)
        if at_boundary:
            finish()
            timer.end()
            timer.write({**learning, "success_mean": success_mean(env)})

    agent.pre_interaction, agent.post_interaction = timed_pre, timed_post


def _learning(tracking: dict[str, Any]) -> dict[str, float | None]:
    """Return skrl's own means over the episodes that ended in this rollout."""

    def mean(tag: str) -> float | None:
        values = tracking.get(tag)
        return statistics.mean(map(float, values)) if values else None

    return {
        "reward_mean": mean("Reward / Total reward (mean)"),
        "episode_length_mean": mean("Episode / Total timesteps (mean)"),
    }
