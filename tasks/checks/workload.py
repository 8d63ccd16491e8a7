"""The workload's fingerprint: what was simulated and trained, as scalars that are equal wherever the work is the same.

Settings keep their own dotted names, so two fingerprints show where they differ. A large part is represented by a short
hash under the name of the part (``env.scene.robot``, ``env.rewards.alive``). Nothing depends on the process, the
machine or the folder. The size that a case already states (environments, seed, iterations) is left out.
"""

import fnmatch
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from suite.schema.record import Case, Scalar
from tasks.rank.configuration import NAMES, look_up
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

# These settings are written out in full. Others are written out two names deep, with a hash of what is below.
WHOLE: Final = ("env.sim.physics", "env.scene.*.renderer_cfg", "agent")
DEPTH: Final = 2
LONGEST_VALUE: Final = 120  # characters of a list that is written out
# Not part of the workload: folders of files, what a screen shows, and what the case states.
LEFT_OUT: Final = (
    "env.seed", "env.log_dir", "env.sim.device", "env.sim.log_dir", "env.sim.logging_level",
    "env.sim.save_logs_to_file", "env.sim.visualizer_cfgs", "env.sim.default_visualizer_cfg", "env.viewer",
    "env.ui_window_class_type", "env.xr", "env.video_recorders", "env.recorders", "env.scene.num_envs",
    # rl_games
    "agent.params.seed", "agent.params.load_*", "agent.params.config.name", "agent.params.config.full_experiment_name",
    "agent.params.config.device*", "agent.params.config.multi_gpu", "agent.params.config.num_actors",
    "agent.params.config.max_epochs", "agent.params.config.train_dir", "agent.params.config.save_*",
    # rsl_rl and skrl
    "agent.seed", "agent.device", "agent.max_iterations", "agent.save_interval", "agent.experiment_name",
    "agent.run_name", "agent.logger", "agent.neptune_project", "agent.wandb_project", "agent.resume", "agent.load_*",
    "agent.agent.experiment", "agent.trainer",
    # sb3
    "agent.n_timesteps",
)  # fmt: skip


def describe(context: RankContext, running: Simulation, agent_settings: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the fingerprint of what this rank is about to train; it is equal on all ranks."""
    from isaaclab.benchmark.capture import run_config_from_env_cfg
    from isaaclab.utils import to_dict
    from isaaclab.utils.assets import NUCLEUS_ASSET_ROOT_DIR

    env, case = running.env.unwrapped, context.case
    observed = env.single_observation_space
    groups = getattr(observed, "spaces", {"policy": observed})
    backends = run_config_from_env_cfg(running.env_cfg)
    places = {NUCLEUS_ASSET_ROOT_DIR: "<assets>", str(context.run_dir): "<run>"}
    settings = {
        **dict(written_out(to_dict(running.env_cfg), "env", places)),
        **dict(written_out(agent_settings, "agent", places)),
    }
    return {
        "task": case.task,
        "workload": case.workload,
        "assets": case.assets,
        "environment_class": f"{type(env).__module__}:{type(env).__qualname__}",
        **{f"observation_size.{name}": size_of(group) for name, group in groups.items()},
        "action_size": size_of(env.single_action_space),
        # None for a direct task, whose class computes the reward
        "reward_terms": ",".join(env.reward_manager.active_terms) if hasattr(env, "reward_manager") else None,
        "physics": backends.physics_backend,
        "renderer": backends.rendering_backend,
        **cameras(env.scene.sensors),
        "physics_dt_s": float(env.physics_dt),
        "decimation": int(env.cfg.decimation),
        "episode_length_s": float(env.max_episode_length_s),
        **training(case, agent_settings),
        **{name: settings[name] for name in sorted(settings)},
    }


def training(case: Case, agent_settings: Mapping[str, Any]) -> dict[str, Scalar]:
    """The part about learning: rollout, minibatches, optimiser steps and networks."""
    names = NAMES[case.agent_library]
    return {
        "rl_library": case.rl_library,
        "num_steps_per_env": case.num_steps_per_env,
        "minibatch_rule": case.minibatch_rule,
        "minibatch_size": case.minibatch_size,
        "global_minibatch_size": case.global_minibatch_size,
        "optimiser_steps": case.optimiser_steps,
        "learning_epochs": short(look_up(agent_settings, names.epochs)),
        "networks": short(look_up(agent_settings, names.networks)),
        "mixed_precision": short(look_up(agent_settings, names.mixed_precision, default=False)),
        "torch_compile": short(look_up(agent_settings, names.torch_compile, default=names.compiles_by_default)),
    }


def size_of(space: Any) -> str:
    """Size of a space, ``4`` or ``3x96x96``; for a group with separate terms, the size of each term."""
    if hasattr(space, "spaces"):
        return ",".join(f"{name}:{size_of(term)}" for name, term in sorted(space.spaces.items()))
    return "x".join(map(str, space.shape))


def cameras(sensors: Mapping[str, Any]) -> dict[str, str]:
    """Resolution and data types of every camera."""
    from isaaclab.sensors import Camera

    described: dict[str, str] = {}
    for name, sensor in sorted(sensors.items()):
        if isinstance(sensor, Camera):
            described[f"camera.{name}.resolution"] = f"{sensor.cfg.width}x{sensor.cfg.height}"
            described[f"camera.{name}.data_types"] = ",".join(sensor.cfg.data_types)
    return described


def written_out(value: Any, name: str, places: Mapping[str, str]) -> Iterator[tuple[str, Scalar]]:
    """Yield the dotted names and values below ``name``. ``places`` maps paths to names that replace them."""
    if matches(name, LEFT_OUT):
        return
    value = portable(value, places)
    if not isinstance(value, Mapping):
        if value is not None:  # unset values are left out
            yield name, short(value)
    elif name.count(".") < DEPTH or any(matches(name, (part, f"{part}.*")) for part in WHOLE):
        for key in sorted(value):
            yield from written_out(value[key], f"{name}.{key}", places)
    elif value:
        yield name, sha256(value)
        for part in WHOLE:  # e.g. the renderer of a camera
            parent, _, key = part.rpartition(".")
            if fnmatch.fnmatchcase(name, parent) and isinstance(value.get(key), Mapping):
                yield from written_out(value[key], f"{name}.{key}", places)


def portable(value: Any, places: Mapping[str, str]) -> Any:
    """Convert ``value`` to JSON types, keys sorted and ``places`` for paths. Raises TypeError for an unknown type."""
    if isinstance(value, Mapping):
        return {str(key): portable(value[key], places) for key in sorted(value, key=str)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [portable(item, places) for item in value]
    if isinstance(value, str):
        for path, place in places.items():
            value = value.replace(path, place)
        return value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, slice):  # all joints or bodies of an entity
        return str(value)
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    raise TypeError(f"a setting is a {type(value).__name__}, which has no portable text: {value!r}")


def short(value: Any) -> Scalar:
    """Keep a scalar (infinity as text); turn a list into JSON, or into a hash if the JSON is long."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    text = json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else sha256(value)


def sha256(value: Any) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]}"


def matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
