"""What the Shadow Hand does, what its camera sees and what the Ant weighs, in one process.

``python -m tests.tasks.probes.hand FRAME.png``: save one frame, command the four tendons and measure J1 + J2, then
judge
pictures that are spoilt. Last, read the Ant's total mass and joint limits as Isaac Lab simulates it.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from tests.tasks.probes import pictures
from tests.tasks.probes.environments import environment

FRACTIONS = (0.25, 0.35, 0.5, 0.6)  # of the tendon's range, one per environment
STEPS = 120  # 2 s


def main(frame_path: str) -> None:
    with environment("Isaac-Reorient-Cube-Shadow-Camera-Direct", len(FRACTIONS)) as env:
        channels = save_frame(env, frame_path)
        tendons = follow(env)
        graph = graph_of(env)
        found = {"channels": channels, **tendons, "cuda_graph": graph, "pictures": pictures.judge_faults(env)}
    with environment("Isaac-Ant", 1) as env:
        print(json.dumps({**found, "ant": weigh(env)}))


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


if __name__ == "__main__":
    main(sys.argv[1])
