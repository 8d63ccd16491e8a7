"""Settings of ``Small-Swing-Up`` and of its agent."""

import math

from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg import CartpolePPORunnerCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg


@configclass
class SwingUpEnvCfg(CartpoleEnvCfg):  # type: ignore[misc]  # Isaac Lab is not installed where types are checked
    initial_pole_angle_range = (math.pi, math.pi)


@configclass
class SwingUpRunnerCfg(CartpolePPORunnerCfg):  # type: ignore[misc]
    num_steps_per_env = 24
