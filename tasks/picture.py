"""Draws one picture of a task's simulation with Newton's renderer, on the CPU: ``python -m tasks.picture JSON``.

``JSON`` is an object: ``task``, ``presets``, ``seed``, ``steps`` of random actions before the picture, ``eye`` and
``target`` of the camera [m], ``width_px``, ``height_px`` and the ``file`` to write as PNG. It prints the versions of
the packages that drew it, as one JSON object.
"""

import argparse
import importlib.metadata
import json
import sys
from typing import Any, Final

FIELD_OF_VIEW: Final = 0.7  # vertical [rad]
BACKGROUND: Final = 0xFFF5F0EC  # ABGR
COLORS: Final = 48  # of the file, which pages carry within them
FLOOR: Final = (0.78, 0.80, 0.83)
BODIES: Final = ((0.16, 0.38, 0.62), (0.85, 0.37, 0.10), (0.20, 0.55, 0.40), (0.80, 0.65, 0.20))
PACKAGES: Final = ("isaaclab", "newton", "warp-lang")


def draw(view: dict[str, Any]) -> None:
    """Run the task for some steps and write the picture. Needs Isaac Lab, so it runs in the worker environment."""
    import warp

    warp.config.enable_backward = False
    import gymnasium as gym
    import torch
    from isaaclab.app import add_launcher_args, launch_simulation
    from isaaclab_tasks.utils import resolve_task_config, setup_preset_cli

    from tasks.rank.simulation import register_all

    register_all()
    parser = argparse.ArgumentParser()
    add_launcher_args(parser)
    arguments, sys.argv[1:] = setup_preset_cli(parser, ["--device", "cpu", *view["presets"]])
    arguments.distributed = False
    env_cfg, _ = resolve_task_config(view["task"], "rsl_rl_cfg_entry_point")
    env_cfg.scene.num_envs, env_cfg.seed, env_cfg.sim.device = 1, view["seed"], "cpu"
    with launch_simulation(env_cfg, arguments):
        env = gym.make(view["task"], cfg=env_cfg)
        env.reset()
        generator = torch.Generator().manual_seed(view["seed"])
        for _ in range(view["steps"]):
            env.step(torch.rand(env.unwrapped.action_space.shape, generator=generator) * 2 - 1)
        _write_picture(view)
        env.close()


def _write_picture(view: dict[str, Any]) -> None:
    import warp
    from isaaclab_newton.physics.newton_manager import NewtonManager
    from newton.sensors import SensorTiledCamera
    from PIL import Image

    model, state = NewtonManager.get_model(), NewtonManager.get_state_0()
    _make_visible(model)
    model.bvh_build_shapes(state)
    config = SensorTiledCamera.RenderConfig(enable_shadows=True)
    sensor = SensorTiledCamera(model, default_render_config=config)
    sensor.utils.create_default_light()
    width, height = view["width_px"], view["height_px"]
    rays = sensor.utils.compute_camera_rays_pinhole(width, height, camera_fovs=FIELD_OF_VIEW)
    color = sensor.utils.create_color_image_output(width, height)
    camera = warp.array([[_looking(view["eye"], view["target"])]], dtype=warp.transformf)
    clear = SensorTiledCamera.ClearData(clear_color=BACKGROUND)
    sensor.update(state, camera, rays, color_image=color, clear_data=clear)
    pixels = color.numpy()[0, 0].view("uint8").reshape(height, width, 4)[..., :3]
    drawn = Image.fromarray(pixels).quantize(COLORS, dither=Image.Dither.NONE)
    drawn.save(view["file"], optimize=True)


def _make_visible(model: Any) -> None:
    """Show and colour the shapes that collide, where a scene without camera has left all others out."""
    import newton

    flags, bodies = model.shape_flags.numpy(), model.shape_body.numpy()
    if (flags[bodies >= 0] & newton.ShapeFlags.VISIBLE).any():
        return
    model.shape_flags.assign(flags | int(newton.ShapeFlags.VISIBLE))
    model.shape_color.assign([FLOOR if body < 0 else BODIES[body % len(BODIES)] for body in bodies])


def _looking(eye: list[float], target: list[float]) -> Any:
    """Return a camera's transform at ``eye`` that looks to ``target``, shape (3,) each [m]; z is up."""
    import warp

    ahead = warp.normalize(warp.vec3f(*target) - warp.vec3f(*eye))
    right = warp.normalize(warp.cross(ahead, warp.vec3f(0.0, 0.0, 1.0)))
    axes = warp.matrix_from_cols(right, warp.cross(right, ahead), -ahead)
    return warp.transformf(warp.vec3f(*eye), warp.quat_from_matrix(axes))


if __name__ == "__main__":
    draw(json.loads(sys.argv[1]))
    print(json.dumps({name: importlib.metadata.version(name) for name in PACKAGES}))
