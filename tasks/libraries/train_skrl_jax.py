"""Trains with skrl 2.1 and JAX under labscale's clock: the same agents, trainer and boundaries as with torch.

Physics and environment stay torch's and Warp's; skrl's wrapper passes observations and actions on by DLPack, without
a copy on a GPU. JAX has a queue of its own. An iteration ends when the trained parameters are there, and in marked
iterations a section ends when JAX has finished what was called in it. What JAX still has to do of the last step when a
rollout ends counts as learning: storing a transition.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import torch

from tasks.libraries import jax_processes, train_skrl
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, use_deterministic_torch
from tasks.rank.timing import IterationTimer, Section

AGENT_ENTRY_POINT = train_skrl.AGENT_ENTRY_POINT  # Isaac Lab has one agent for both


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these as skrl will train them with JAX.

    With JAX, policy and value never share a network, whatever the agent says.
    """
    agent_cfg = train_skrl.configure(context, simulation)
    agent_cfg["models"]["separate"] = True
    return agent_cfg


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's rollouts with their updates and return a copy of the trained parameters.

    Raises:
        RuntimeError: JAX has no GPU, and the case asks for one.
    """
    with jax_processes.jax_environment(context):
        import jax
        import skrl
        from isaaclab_rl.skrl import SkrlVecEnvWrapper

        if not context.ranks.is_distributed:  # otherwise skrl takes the rank's own device
            skrl.config.jax.device = context.device.type
        env = SkrlVecEnvWrapper(simulation.env, ml_framework="jax")
        from skrl.utils.runner.jax import Runner

        runner = Runner(env, settings)
        chosen = {"jax_platform": skrl.config.jax.device.platform, "xla_flags": os.environ.get("XLA_FLAGS")}
        context.log.write("settings", settings=chosen)
        use_deterministic_torch(context)
        agent = runner.agent
        _wait_in_sections(agent, context.timer)

        def finish() -> None:
            networks = agent.policy.state_dict.params, agent.value.state_dict.params
            jax.block_until_ready((*networks, agent.policy_optimizer.state, agent.value_optimizer.state))

        train_skrl.attach(agent, env, context, finish)
        runner.run()
        models = (agent.policy, agent.value)
        return torch.nn.ParameterList(
            torch.nn.Parameter(torch.tensor(jax.device_get(leaf)), requires_grad=False)
            for model in models
            for leaf in jax.tree.leaves(model.state_dict.params)
        )


def _wait_in_sections(agent: Any, timer: IterationTimer) -> None:
    """Let marked sections end when JAX has finished, and time the gradients' all-reduce, which skrl does by JAX."""
    import jax

    def finished(call: Callable[..., Any], section: Section) -> Callable[..., Any]:
        @functools.wraps(call)
        def waits_for_result(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            return jax.block_until_ready(result) if section.enabled else result

        return waits_for_result

    def after_its_input(call: Callable[[Any], Any], section: Section) -> Callable[[Any], Any]:
        return lambda tree: call(jax.block_until_ready(tree) if section.enabled else tree)

    def num_bytes(tree: Any) -> int:
        return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))

    agent.act = finished(agent.act, timer.inference)
    for model in (agent.policy, agent.value):
        reduce = timer.all_reduce.wrap(finished(model.reduce_parameters, timer.all_reduce), num_bytes=num_bytes)
        model.reduce_parameters = after_its_input(reduce, timer.all_reduce)
