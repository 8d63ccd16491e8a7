"""Trains with rl_games 1.6.5 under labscale's clock: its own agent, subclassed where an epoch begins and ends."""

import copy
import math
from typing import Any

import torch

from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_mean, use_deterministic_torch
from tasks.rank.timing import IterationTimer

AGENT_ENTRY_POINT = "rl_games_cfg_entry_point"


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these as the library will read them."""
    agent_cfg: dict[str, Any] = simulation.agent_cfg
    params = agent_cfg["params"]
    config = params["config"] = _PinnedDevice(params["config"])
    params["seed"] = context.seed
    config.pin(str(context.device))
    config["multi_gpu"] = context.ranks.is_distributed
    config["max_epochs"] = context.case.iterations
    config["train_dir"], config["full_experiment_name"] = context.library_dir, "rl_games"
    if context.device.type == "cpu":
        config.setdefault("torch_compile", False)  # a minute of compilation for networks of a few thousand parameters
        config["mixed_precision"] = False  # CUDA only
    return agent_cfg


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's epochs and return the trained model."""
    from isaaclab.benchmark.entrypoints.backends.rl_games.registry import register_scoped_rl_games_environment
    from isaaclab_rl.rl_games import RlGamesGpuEnv, RlGamesVecEnvWrapper
    from rl_games.common import env_configurations, vecenv
    from rl_games.common.algo_observer import IsaacAlgoObserver
    from rl_games.torch_runner import Runner

    params, config = settings["params"], settings["params"]["config"]
    clip_obs = params["env"].get("clip_observations", math.inf)
    clip_actions = params["env"].get("clip_actions", math.inf)
    env = RlGamesVecEnvWrapper(simulation.env, str(context.device), clip_obs, clip_actions)
    env.step = context.timer.environment_step.wrap(env.step)
    restore = register_scoped_rl_games_environment(vecenv, env_configurations, env, RlGamesGpuEnv)
    config["num_actors"] = env.unwrapped.num_envs
    try:
        runner = Runner(IsaacAlgoObserver())
        runner.load(settings)
        agents: list[Any] = []
        runner.algo_factory.register_builder("a2c_continuous", lambda **kw: _agent(env, context.timer, agents, **kw))
        env.seed(params["seed"])  # in all generators: the runner has added the rank, which this seed has already
        use_deterministic_torch(context)  # here, since seeding the environment sets cuDNN back
        runner.reset()
        runner.run({"train": True, "play": False, "sigma": None})
    finally:
        restore()
    (agent,) = agents
    if agent.writer is not None:
        agent.writer.close()
    model: torch.nn.Module = agent.model
    return model


class _PinnedDevice(dict[str, Any]):
    """Keeps a rank's device: with several ranks rl_games would overwrite it with ``cuda:<rank>``, on a CPU too."""

    def pin(self, device: str) -> None:
        dict.__setitem__(self, "device", device)
        dict.__setitem__(self, "device_name", device)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in ("device", "device_name"):
            super().__setitem__(key, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_PinnedDevice":
        return _PinnedDevice({key: copy.deepcopy(value, memo) for key, value in self.items()})


def _agent(env: Any, timer: IterationTimer, agents: list[Any], **kwargs: Any) -> Any:
    from rl_games.algos_torch.a2c_continuous import A2CAgent

    class TimedAgent(A2CAgent):  # type: ignore[misc]  # the base is untyped
        """Times an epoch: ``play_steps`` and the update. Logging and checkpoints come after ``train_epoch``."""

        def play_steps(self) -> Any:
            batch = super().play_steps()
            timer.end_collection()
            return batch

        def train_epoch(self) -> Any:
            timer.begin()
            result = super().train_epoch()
            timer.end()
            step_time_s, play_time_s, update_time_s, total_time_s = result[:4]
            frames = self.curr_frames * self.world_size
            timer.write(
                {
                    "reward_mean": _meter(self.game_rewards),
                    "episode_length_mean": _meter(self.game_lengths),
                    "success_mean": success_mean(env),
                    "rl_games.step_fps": frames / step_time_s,
                    "rl_games.step_inference_fps": frames / play_time_s,
                    "rl_games.total_fps": frames / total_time_s,
                    "rl_games.update_time_s": update_time_s,
                }
            )
            return result

    agent = TimedAgent(**kwargs)
    agent.get_action_values = timer.inference.wrap(agent.get_action_values)
    agents.append(agent)
    return agent


def _meter(meter: Any) -> float | None:
    """Mean over rl_games' last finished episodes; None before the first one ends."""
    return float(meter.get_mean().flatten()[0]) if meter.current_size > 0 else None
