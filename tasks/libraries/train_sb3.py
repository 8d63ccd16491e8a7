"""Trains with Stable-Baselines3 2.9 under labscale's clock: its PPO, with the rollout and the update timed.

Its environment, rollout buffer and returns are NumPy's. So every step goes from torch to NumPy and back, and every
minibatch from NumPy to torch. That way has no section of its own: it lies in environment steps (Isaac Lab's wrapper),
in the rest of the rollout, and in learning.
"""

import functools
import statistics
from typing import Any

import torch

from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_mean
from tasks.rank.timing import IterationTimer

AGENT_ENTRY_POINT = "sb3_cfg_entry_point"
# Not PPO's own. An agent that normalises does not get here, see tasks.rank.configuration.
OF_NORMALISATION = ("normalize_input", "normalize_value", "clip_obs")


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these, before Isaac Lab makes objects of them."""
    case = context.case
    agent_cfg: dict[str, Any] = simulation.agent_cfg
    agent_cfg["seed"] = context.seed
    agent_cfg["device"] = str(context.device)  # agents name cuda:0
    agent_cfg["n_timesteps"] = case.iterations * case.num_steps_per_env * case.num_envs
    return agent_cfg


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's rollouts with their updates and return the trained policy, of which the critic is a part."""
    from isaaclab_rl.sb3 import Sb3VecEnvWrapper, process_sb3_cfg
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import Logger

    env = Sb3VecEnvWrapper(simulation.env)
    arguments = process_sb3_cfg(settings, context.case.num_envs)
    policy, num_timesteps = arguments.pop("policy"), arguments.pop("n_timesteps")
    cudnn = torch.backends.cudnn
    flags = cudnn.deterministic, cudnn.benchmark
    agent = PPO(policy, env, **{name: value for name, value in arguments.items() if name not in OF_NORMALISATION})
    cudnn.deterministic, cudnn.benchmark = flags  # its seeding changes them on GPUs; all libraries have the same
    agent.set_logger(Logger(folder=None, output_formats=[]))  # its own leaves an empty temporary folder
    _attach(agent, env, context.timer)
    agent.learn(total_timesteps=num_timesteps, log_interval=None)  # as Isaac Lab's own benchmark: it writes no log
    trained: torch.nn.Module = agent.policy
    return trained


def _attach(agent: Any, env: Any, timer: IterationTimer) -> None:
    """Time PPO's loop: ``collect_rollouts``, which computes the returns too, then ``train``."""
    env.step_async = timer.environment_step.wrap(env.step_async)  # actions to the device
    env.step_wait = timer.environment_step.wrap(env.step_wait)
    agent.policy.forward = timer.inference.wrap(agent.policy.forward)  # the update calls evaluate_actions
    collect_rollouts, train_on_rollout = agent.collect_rollouts, agent.train

    @functools.wraps(collect_rollouts)
    def timed_collect_rollouts(*args: Any, **kwargs: Any) -> Any:
        timer.begin()
        goes_on = collect_rollouts(*args, **kwargs)
        timer.end_collection()
        return goes_on

    @functools.wraps(train_on_rollout)
    def timed_train() -> None:
        train_on_rollout()
        timer.end()
        episodes = agent.ep_info_buffer
        timer.write(
            {
                "reward_mean": _mean(episodes, "r"),
                "episode_length_mean": _mean(episodes, "l"),
                "success_mean": success_mean(env),
            }
        )

    agent.collect_rollouts, agent.train = timed_collect_rollouts, timed_train


def _mean(episodes: Any, name: str) -> float | None:
    """Mean over the last finished episodes, as SB3 keeps them; None before the first one ends."""
    return statistics.mean(float(episode[name]) for episode in episodes) if episodes else None
