"""Registers ``Small-Swing-Up``: Isaac Lab's Cartpole with a pole that hangs at first, and an agent of its own."""

import gymnasium as gym

gym.register(
    id="Small-Swing-Up",
    entry_point="isaaclab_tasks.core.cartpole.cartpole_direct_env:CartpoleEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.swing_up:SwingUpEnvCfg",
        "rsl_rl_cfg_entry_point": f"{__name__}.swing_up:SwingUpRunnerCfg",
    },
)
