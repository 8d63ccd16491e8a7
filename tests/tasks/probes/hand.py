"""What the Shadow Hand does, what its camera sees, what the Ant weighs and what it drops, in one process.

``python -m tests.tasks.probes.hand FRAME.png GOLDEN.png``: save one frame and compare it with another, as it is and
shifted. Command the four tendons and measure J1 + J2, then judge pictures that are spoilt. Last, read the Ant's total
mass and joint limits as Isaac Lab simulates it, and let it walk with buffers of MuJoCo Warp that are too small.
"""

import ctypes
import gc
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from tasks.picture import task_environment

FRACTIONS = (0.25, 0.35, 0.5, 0.6)  # of the tendon's range, one per environment
STEPS = 120  # 2 s
SEED = 42
SMALL_BUFFERS = tuple(f"env.sim.physics.solver_cfg.{capacity}=1" for capacity in ("njmax", "nconmax"))
ANT_STEPS = 96  # every Ant falls and touches the ground
COUNTS_AS_DIFFERENT = 16  # of 255, in any channel


def main(frame_path: str, golden_path: str) -> None:
    with task_environment("Isaac-Reorient-Cube-Shadow-Camera-Direct", num_envs=len(FRACTIONS), seed=SEED) as env:
        results = {"channels": save_frame(env, frame_path), **follow(env), "cuda_graph": graph_of(env)}
        results |= {"pictures": judge_faults(env)}
    differences = [difference(frame_path, golden_path, shift) for shift in (0, 3)]
    with task_environment("Isaac-Ant", SMALL_BUFFERS, num_envs=4, seed=SEED) as env:
        results |= {"differences": differences, "ant": weigh(env), "dropped": dropped(env)}
    ctypes.CDLL(None).fflush(None)  # what MuJoCo Warp prints of full buffers: the answer is the last line
    print(json.dumps(results))
    gc.freeze()  # as a rank does: the interpreter would spend seconds on what the exit frees anyway


def difference(a_path: str, b_path: str, shift: int) -> list[float]:
    """Differing shade in the worst channel, on average [of 255], and the share of pixels that clearly differ.

    The second picture is moved to the right by ``shift`` pixels.
    """
    import numpy as np
    from PIL import Image

    a, b = (np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (a_path, b_path))
    shades = np.abs(a - np.roll(b, shift, axis=1))
    return [float(shades.mean(axis=(0, 1)).max()), float((shades.max(axis=2) > COUNTS_AS_DIFFERENT).mean())]


def graph_of(env: Any) -> dict[str, Any]:
    """What ``tasks.checks.physics`` reads of Isaac Lab's manager, and which names that it looks for are there."""
    from tasks.checks import physics

    names = ("_graph", "_graph_capture_pending", "_supports_cuda_graph_capture")
    return {
        "names": [name for name in names if hasattr(env.sim.physics_manager, name)],
        "state": asdict(physics.read_graph(env.sim, env.cfg.sim.physics)),
    }


def save_frame(env: Any, path: str) -> dict[str, list[int]]:
    """The first environment's colours, and the shape of every data type."""
    import torch
    from PIL import Image

    output = env.scene["tiled_camera"].data.output
    Image.fromarray(output["rgb"][0].to(torch.uint8).numpy()).save(path)
    return {name: list(value.shape) for name, value in output.items()}


def follow(env: Any) -> dict[str, Any]:
    """Angles by tendon and environment, after ``STEPS`` steps towards what is commanded."""
    import torch

    never = torch.zeros(env.num_envs, dtype=torch.bool)
    env._get_dones = lambda: (never, never)  # the dropped cube would end the episode
    env._get_observations = dict  # nobody looks, so nothing is drawn: that is most of a step's time
    pose = env.object.data.root_link_pose_w.torch.clone()
    pose[:, 2] -= 5.0  # out of the fingers' way
    env.object.write_root_pose_to_sim_index(root_pose=pose)
    actions = torch.zeros(env.num_envs, env.cfg.action_space)
    actions[:, -4:] = (2.0 * torch.tensor(FRACTIONS) - 1.0)[:, None]
    for _ in range(STEPS):
        env.step(actions)
    del env._get_dones, env._get_observations
    angles = env.hand.data.joint_pos.torch
    names = env.hand.joint_names
    measured = {
        f"rh_{finger}J0": [
            float(angles[i, names.index(f"rh_{finger}J1")] + angles[i, names.index(f"rh_{finger}J2")])
            for i in range(env.num_envs)
        ]
        for finger in ("FF", "MF", "RF", "LF")
    }
    low, high = env.tendon_lower_limits[0, 0].item(), env.tendon_upper_limits[0, 0].item()
    commanded = [low + fraction * (high - low) for fraction in FRACTIONS]
    return {"commanded_rad": commanded, "measured_rad": measured}


def weigh(env: Any) -> dict[str, Any]:
    robot = env.scene["robot"]
    limits = robot.data.joint_pos_limits.torch[0].rad2deg()
    return {
        "mass_kg": float(robot.data.body_mass.torch[0].sum()),
        "joint_limits_deg": {name: limits[i].tolist() for i, name in enumerate(robot.joint_names)},
    }


def dropped(env: Any) -> dict[str, Any]:
    """What the check of MuJoCo Warp's buffers says after some steps of random actions."""
    import torch

    from tasks.checks import physics

    timer = SimpleNamespace()
    overflow = physics.watch_overflow(env.sim, timer)
    assert overflow is not None
    generator = torch.Generator().manual_seed(SEED)
    for _ in range(ANT_STEPS):
        env.step(torch.rand(env.action_space.shape, generator=generator) * 2 - 1)
        timer.after_iteration()
    return asdict(overflow.check())


# ---- pictures, spoilt where Isaac Lab draws them, so the checks look through the same camera as the task does ----


def judge_faults(env: Any) -> dict[str, dict[str, Any]]:
    """Verdicts of ``tasks.checks.validity`` for each fault: name of the check -> [verdict, fault, what was found]."""
    first: dict[str, Any] = {}
    faults: dict[str, Callable[[str, Any], object]] = {
        "none": lambda *_: None,
        "blank": lambda _, picture: picture.zero_(),
        "blank_in_one_environment": lambda _, picture: picture[-1].zero_(),
        "nan_depth": lambda kind, picture: picture[2, 5, 5].fill_(math.nan) if kind == "depth" else None,
        "frozen": lambda kind, picture: picture.copy_(first.setdefault(kind, picture.clone())),
        "swapped": lambda _, picture: picture.copy_(picture.roll(1, dims=0).clone()),
        "copies_of_the_first": lambda _, picture: picture.copy_(picture[:1].clone().expand_as(picture)),
    }
    verdicts = {name: judged(env, fault) for name, fault in faults.items()}
    verdicts |= {"wrong_height": told(env, height=60), "missing_type": told(env, data_types=["rgb", "normals"])}
    # Last, because nothing is sound after it.
    verdicts["nan_position"] = judged(env, lambda *_: env.object.data.root_link_pose_w.torch[1, 0].fill_(math.nan))
    return verdicts


@contextmanager
def put_in(env: Any, fault: Callable[[str, Any], object]) -> Iterator[None]:
    """Let every frame be spoilt where Isaac Lab draws it."""
    rendering = type(env.sim.render_context)
    draw = rendering.render_into_cameras

    def spoilt(self: Any, requests: Any, step: int) -> None:
        draw(self, requests, step)
        for _, _, data in requests:
            for kind, output in data.output.items():
                fault(kind, output.torch)

    rendering.render_into_cameras = spoilt
    try:
        yield
    finally:
        rendering.render_into_cameras = draw


def told(env: Any, **settings: Any) -> dict[str, Any]:
    """Judge sound pictures by other settings than those that they were drawn by."""
    camera = env.scene["tiled_camera"].cfg
    before = {name: getattr(camera, name) for name in settings}
    vars(camera).update(settings)
    try:
        return judged(env, lambda *_: None)
    finally:
        vars(camera).update(before)


def judged(env: Any, fault: Callable[[str, Any], object]) -> dict[str, Any]:
    from tasks.checks import validity
    from tasks.rank.simulation import Simulation

    with put_in(env, fault):
        results = validity.check(Simulation(env=env, env_cfg=None, agent_cfg=None))
    return {result.name: [result.verdict, result.fault, result.found] for result in results}


if __name__ == "__main__":
    main(*sys.argv[1:])
