"""Serves a running simulation with Isaac Lab's viser visualizer, to browsers of this machine alone."""

import os
from typing import Any, Final

WATCH_VARIABLE: Final = "LABSCALE_WATCH"  # the port
HOST: Final = "127.0.0.1"  # viser itself would take every interface, and it asks nobody for a password
MOST_SHOWN: Final = 16  # environments


def serve_if_asked(env_cfg: Any, *, rank: int) -> None:
    """Let the simulation of rank 0 be served if the launch asks for it. Isaac Lab starts the server."""
    port = os.environ.get(WATCH_VARIABLE)
    if port is None or rank != 0:
        return
    from isaaclab_visualizers.viser import ViserVisualizerCfg

    env_cfg.sim.visualizer_cfgs = [
        ViserVisualizerCfg(port=int(port), bind_address=HOST, display_address=HOST, max_visible_envs=MOST_SHOWN)
    ]
