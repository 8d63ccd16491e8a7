"""Trains with rsl_rl 5.5 under labscale's clock. Its own loop runs unchanged; the timer wraps methods that it calls."""

import functools
import statistics
from typing import Any

import torch

from tasks.rank.context import RankContext, Ranks
from tasks.rank.simulation import Simulation, success_mean, use_deterministic_torch
from tasks.rank.timing import IterationTimer

AGENT_ENTRY_POINT = "rsl_rl_cfg_entry_point"


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these as the library will read them."""
    import importlib.metadata

    from isaaclab.utils import to_dict
    from isaaclab_rl.rsl_rl import handle_deprecated_rsl_rl_cfg

    agent_cfg = handle_deprecated_rsl_rl_cfg(simulation.agent_cfg, importlib.metadata.version("rsl-rl-lib"))
    agent_cfg.device = str(context.device)
    agent_cfg.seed = context.seed
    settings: dict[str, Any] = to_dict(agent_cfg)
    return settings


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's iterations and return the trained modules."""
    at_random_length = settings["init_at_random_ep_len"]
    runner, env = make_runner(context, simulation, settings)
    use_deterministic_torch(context)
    _attach(runner, env, context.timer)
    runner.learn(num_learning_iterations=context.case.iterations, init_at_random_ep_len=at_random_length)
    return trained(runner)


def make_runner(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return rsl_rl's runner with its models, and its environment."""
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    env = RslRlVecEnvWrapper(simulation.env, clip_actions=settings["clip_actions"])
    runner = _runner_class(context.ranks)(env, settings, log_dir=context.library_dir, device=str(context.device))
    # The suite records the state of this checkout; rsl_rl would copy every repository's diff.
    runner.logger.git_status_repos = []
    return runner, env


def trained(runner: Any) -> torch.nn.Module:
    """Return all modules that the optimiser changes."""
    return torch.nn.ModuleList([runner.alg.actor, runner.alg.critic])


def _runner_class(ranks: Ranks) -> Any:
    from rsl_rl.runners import OnPolicyRunner

    class JoinedRunner(OnPolicyRunner):  # type: ignore[misc]  # the base is untyped
        """rsl_rl's runner for a process group that was started before, on any device."""

        def _configure_multi_gpu(self) -> None:
            self.is_distributed = ranks.is_distributed
            self.gpu_local_rank, self.gpu_global_rank = ranks.local_rank, ranks.rank
            self.gpu_world_size = ranks.world_size
            who = {"global_rank": ranks.rank, "local_rank": ranks.local_rank, "world_size": ranks.world_size}
            self.cfg["multi_gpu"] = who if ranks.is_distributed else None

    return JoinedRunner


def _attach(runner: Any, env: Any, timer: IterationTimer) -> None:
    """Time the loop of ``OnPolicyRunner.learn`` at its own boundaries.

    The loop calls ``alg.act`` first in a rollout, ``alg.compute_returns`` right after the rollout, and ``logger.log``
    right after the update, with its own two durations as arguments.
    """
    env.step = timer.environment_step.wrap(env.step)
    act, compute_returns, log = timer.inference.wrap(runner.alg.act), runner.alg.compute_returns, runner.logger.log
    in_rollout = False

    @functools.wraps(act)
    def timed_act(obs: Any) -> Any:
        nonlocal in_rollout
        if not in_rollout:
            in_rollout = True
            timer.begin()
        return act(obs)

    @functools.wraps(compute_returns)
    def timed_compute_returns(obs: Any) -> Any:
        nonlocal in_rollout
        in_rollout = False
        timer.end_collection()
        return compute_returns(obs)

    @functools.wraps(log)
    def timed_log(**fields: Any) -> None:
        timer.end()
        log(**fields)
        frames = runner.cfg["num_steps_per_env"] * env.num_envs * runner.gpu_world_size
        timer.write(
            {
                "reward_mean": _mean(runner.logger.rewbuffer),
                "episode_length_mean": _mean(runner.logger.lenbuffer),
                "success_mean": success_mean(env),
                "rsl_rl.collection_time_s": fields["collect_time"],
                "rsl_rl.learning_time_s": fields["learn_time"],
                "rsl_rl.total_fps": frames / (fields["collect_time"] + fields["learn_time"]),
            }
        )

    runner.alg.act, runner.alg.compute_returns, runner.logger.log = timed_act, timed_compute_returns, timed_log


def _mean(values: Any) -> float | None:
    """Mean over rsl_rl's buffer of finished episodes; ranks above 0 have none."""
    return statistics.mean(values) if values else None
