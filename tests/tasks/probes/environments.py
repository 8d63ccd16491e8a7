"""Isaac Lab's own environment of a task, without training: ``with environment(task, num_envs) as env``."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def environment(task: str, num_envs: int) -> Iterator[Any]:
    """Create the unwrapped environment on the CPU with the seed 42."""
    import argparse

    import warp

    warp.config.enable_backward = False  # as a rank does, so that the two share compiled kernels

    import gymnasium as gym
    import isaaclab_tasks  # noqa: F401  (registers the tasks)
    from isaaclab.app import add_launcher_args, launch_simulation
    from isaaclab_tasks.utils import resolve_task_config, setup_preset_cli

    parser = argparse.ArgumentParser()
    add_launcher_args(parser)
    args, remaining = setup_preset_cli(parser, ["--device", "cpu"])
    sys.argv = [sys.argv[0], *remaining]
    env_cfg, _ = resolve_task_config(task, "rsl_rl_cfg_entry_point")
    env_cfg.scene.num_envs = num_envs
    env_cfg.sim.device = "cpu"
    env_cfg.seed = 42
    with launch_simulation(env_cfg, args):
        env = gym.make(task, cfg=env_cfg)
        env.reset()
        try:
            yield env.unwrapped
        finally:
            env.close()
            gc.freeze()  # as a rank does: the interpreter would spend seconds on what the exit frees anyway
