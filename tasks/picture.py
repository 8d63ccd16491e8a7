"""Draws one picture of a task's simulation with Newton's renderer, on the CPU: ``python -m tasks.picture JSON``.

``JSON`` is an object: ``task``, ``presets``, ``seed``, ``steps`` of random actions before the picture, ``eye`` and
``target`` of the camera [m], ``width_px``, ``height_px`` and the ``file`` to write as PNG. It prints the versions of
the packages that drew it, as a marked JSON object.
"""

import argparse
import importlib.metadata
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from suite.schema.rank_protocol import answer_line

COLORS: Final = 48  # of the file, which pages carry within them
PACKAGES: Final = ("isaaclab", "newton", "warp-lang")


@contextmanager
def task_environment(task: str, presets: Sequence[str] = (), *, num_envs: int, seed: int) -> Iterator[Any]:
    """Create the environment of a task on the CPU, as it begins. Needs Isaac Lab: it runs in the worker environment."""
    import warp

    warp.config.enable_backward = False  # as a rank does, so that both have the same compiled kernels
    import gymnasium as gym
    from isaaclab.app import add_launcher_args, launch_simulation
    from isaaclab_tasks.utils import resolve_task_config, setup_preset_cli

    from tasks.rank.simulation import register_all

    register_all()
    parser = argparse.ArgumentParser()
    add_launcher_args(parser)
    arguments, sys.argv[1:] = setup_preset_cli(parser, ["--device", "cpu", *presets])
    arguments.distributed = False
    env_cfg, _ = resolve_task_config(task, "rsl_rl_cfg_entry_point")
    env_cfg.scene.num_envs, env_cfg.seed, env_cfg.sim.device = num_envs, seed, "cpu"
    with launch_simulation(env_cfg, arguments):
        env = gym.make(task, cfg=env_cfg)
        env.reset()
        try:
            yield env.unwrapped
        finally:
            env.close()


def draw(view: dict[str, Any]) -> None:
    """Run the task for some steps and write the picture."""
    with task_environment(view["task"], view["presets"], num_envs=1, seed=view["seed"]) as env:
        import torch
        from PIL import Image

        from tasks.film.camera import NewtonCamera

        generator = torch.Generator().manual_seed(view["seed"])
        for _ in range(view["steps"]):
            env.step(torch.rand(env.action_space.shape, generator=generator) * 2 - 1)
        camera = NewtonCamera(worlds=1, width_px=view["width_px"], height_px=view["height_px"])
        (pixels,) = camera.picture([view["eye"]], [view["target"]])
        drawn = Image.fromarray(pixels.contiguous().numpy()).quantize(COLORS, dither=Image.Dither.NONE)
        drawn.save(view["file"], optimize=True)


if __name__ == "__main__":
    draw(json.loads(sys.argv[1]))
    print(answer_line({name: importlib.metadata.version(name) for name in PACKAGES}))
