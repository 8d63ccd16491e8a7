"""Prints what Isaac Lab, or an extension installed beside it, registers for some tasks, as one JSON object.

    python -m tasks.registered STACKS TASK...

Starts no simulation. ``STACKS`` is a JSON object: stack -> the presets that select it, for tasks without cameras, then
for tasks with cameras. For an unknown task the answer lists the ids that are registered.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from suite.schema.rank_protocol import answer_line
from suite.schema.record import RlLibrary, Stack
from tasks.rank.configuration import NAMES, look_up, upstreams_name

ISAAC_SIM_MODULES: Final = ("carb", "isaacsim", "omni")
# rl_games has a separate minibatch size for an asymmetric critic, which must divide the batch too.
CRITIC_MINIBATCH: Final = "params.config.central_value_config.minibatch_size"


def answers(tasks: Sequence[str], stacks: Mapping[Stack, Sequence[Sequence[str]]]) -> list[dict[str, Any]]:
    """Return the facts about each task; for an unknown task, the ids that are registered."""
    import gymnasium as gym

    from tasks.rank.simulation import register_all

    try:
        register_all()
    except ModuleNotFoundError as error:
        if not needs_isaac_sim(error):
            raise
        return [{"task": task, "cannot_load": str(error)} for task in tasks]
    ids = sorted(gym.registry)
    return [facts(task, stacks) if task in ids else {"task": task, "registered": ids} for task in tasks]


def facts(task: str, stacks: Mapping[Stack, Sequence[Sequence[str]]]) -> dict[str, Any]:
    obstacles = {stack: obstacle(task, presets) for stack, presets in stacks.items()}
    runnable = [presets for stack, presets in stacks.items() if obstacles[stack] is None]
    return {
        "task": task,
        "agents": dict(agents(task)),
        "cameras": bool(runnable) and has_cameras(task, runnable[0][0]),
        "obstacles": {stack: why for stack, why in obstacles.items() if why is not None},
    }


def agents(task: str) -> Iterator[tuple[RlLibrary, dict[str, Any]]]:
    """Yield the settings that define an iteration, for each library that the task has an agent for."""
    import gymnasium as gym
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets

    for library, names in NAMES.items():
        entry_point = f"{upstreams_name(library)}_cfg_entry_point"
        if gym.spec(task).kwargs.get(entry_point) is None:
            continue
        agent = resolve_presets(load_cfg_from_registry(task, entry_point))
        settings = agent if isinstance(agent, dict) else agent.to_dict()
        rollout = {
            "num_steps_per_env": look_up(settings, names.num_steps),
            "minibatch_size" if names.is_size else "num_minibatches": look_up(settings, names.minibatch),
            "learning_epochs": look_up(settings, names.epochs),
        }
        if all(isinstance(value, int) and value > 0 for value in rollout.values()):  # else the agent is not PPO
            has_critic = library == "rl_games" and look_up(settings, CRITIC_MINIBATCH) is not None
            overrides = [f"agent.{CRITIC_MINIBATCH}={{minibatch_size}}"] if has_critic else []
            yield library, {**rollout, "minibatch_overrides": overrides}


def obstacle(task: str, choices: Sequence[Sequence[str]]) -> str | None:
    """Why the task does not run with a stack's presets; None if it runs."""
    from isaaclab.app import validate_launch

    is_newton = not choices[0]
    try:
        presets = choices[-1] if has_cameras(task, choices[0]) else choices[0]
        scan, kit_sources = validate_launch(env_cfg_of(task, presets), {"livestream": 0})
    except ModuleNotFoundError as error:
        if not needs_isaac_sim(error):
            raise
        return f"needs Isaac Sim: {error}"
    except ValueError as error:
        return str(error).strip().splitlines()[0]
    is_of_isaac_sim = any("isaacsim" in preset for preset in choices[0])
    if kit_sources and not is_of_isaac_sim:
        return f"needs Isaac Sim: {', '.join(kit_sources)}"
    if is_newton and (scan.has_ovphysx_physics or scan.has_ovrtx):
        return "has no Newton physics" if scan.has_ovphysx_physics else "has no renderer of Newton's"
    return None


def env_cfg_of(task: str, presets: Sequence[str]) -> Any:
    from isaaclab_tasks.utils import resolve_task_config

    env_cfg, _ = resolve_task_config(task, None, overrides=list(presets))
    return env_cfg


def has_cameras(task: str, presets: Sequence[str]) -> bool:
    """Whether the scene has a camera, or the environment's own settings have one, as in direct tasks of 2.x."""
    from isaaclab.sensors import CameraCfg

    env_cfg = env_cfg_of(task, presets)
    values = [*vars(env_cfg).values(), *vars(env_cfg.scene).values()]
    return any(isinstance(value, CameraCfg) for value in values)


def needs_isaac_sim(error: ModuleNotFoundError) -> bool:
    return (error.name or "").partition(".")[0] in ISAAC_SIM_MODULES


def main(argv: list[str]) -> int:
    out = os.fdopen(os.dup(1), "w")  # Isaac Lab prints what it reads
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    print(answer_line({"answers": answers(argv[2:], json.loads(argv[1]))}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
