"""Read the Ant as Isaac Lab simulates it: total mass and joint limits."""

import json

from tests.probes.environments import environment


def main() -> None:
    with environment("Isaac-Ant", 1) as env:
        robot = env.scene["robot"]
        limits = robot.data.joint_pos_limits.torch[0].rad2deg()
        print(
            json.dumps(
                {
                    "mass_kg": float(robot.data.body_mass.torch[0].sum()),
                    "joint_limits_deg": {name: limits[i].tolist() for i, name in enumerate(robot.joint_names)},
                }
            )
        )


if __name__ == "__main__":
    main()
