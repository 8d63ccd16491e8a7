"""Where rounds run. ``suite.launch.registry`` knows the launchers and adds their arguments."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Place:
    launcher: str = "native"
    launcher_settings: object = None  # its own options, as its entry reads them; None: their defaults
    image: str | None = None
    render_only: bool = False  # write scripts, run nothing
    accept_eula: bool = False  # NVIDIA's licence of Isaac Sim, accepted by the user
    ignore_env_check: bool = False
