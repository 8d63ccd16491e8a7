"""Command the hand's four tendons and measure J1 + J2; save one camera frame.

``python -m tests.probes.hand FRAME.png``
"""

import json
import sys

from tests.probes.environments import environment

FRACTIONS = (0.25, 0.6)  # of the tendon's range, one per environment
STEPS = 150  # 2.5 s


def main(frame_path: str) -> None:
    with environment("Isaac-Reorient-Cube-Shadow-Camera-Direct", len(FRACTIONS)) as env:
        import torch
        from PIL import Image

        frame = env.scene["tiled_camera"].data.output["rgb"][0]
        Image.fromarray(frame.to(torch.uint8).numpy()).save(frame_path)
        channels = {name: list(value.shape) for name, value in env.scene["tiled_camera"].data.output.items()}

        never = torch.zeros(env.num_envs, dtype=torch.bool)
        env._get_dones = lambda: (never, never)  # the dropped cube would end the episode
        pose = env.object.data.root_link_pose_w.torch.clone()
        pose[:, 2] -= 5.0  # out of the fingers' way
        env.object.write_root_pose_to_sim_index(root_pose=pose)
        actions = torch.zeros(env.num_envs, env.cfg.action_space)
        actions[:, -4:] = (2.0 * torch.tensor(FRACTIONS) - 1.0)[:, None]
        for _ in range(STEPS):
            env.step(actions)
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
        print(json.dumps({"commanded_rad": commanded, "measured_rad": measured, "channels": channels}))


if __name__ == "__main__":
    main(sys.argv[1])
