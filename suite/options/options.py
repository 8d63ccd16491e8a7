"""What the user asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.files import paths
from suite.schema.record import Assets, Device, RlLibrary, Stack

ROOT: Final = paths.ROOT

RenderFor = Literal["kubernetes", "osmo"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for; see ``python -m suite bench --help``."""

    matrix: str = ""  # until the device is known, where the user names none: see suite.campaign.steps.start
    series: tuple[str, ...] = ()
    case_globs: tuple[str, ...] = ()
    rl_libraries: tuple[RlLibrary, ...] = ()
    gpus: tuple[int, ...] = ()
    repeats: int | None = None
    target_precision: float | None = None
    max_rounds: int | None = None
    budget_minutes: float | None = None
    a_a: bool | None = None
    pack: bool | None = None  # several rounds at a time; None: where there are GPUs to share out
    capacity: str | None = None  # a series: search instead of running the matrix
    most_envs: int | None = None
    stack: Stack | None = None
    device: Device | None = None
    assets: Assets = "offline"
    seed: int | None = None
    worker_python: Path | None = None
    worker_packages: tuple[str, ...] = ()  # added to the worker: paths and requirements
    out: Path | None = None
    host_label: str | None = None
    retry_failed: bool = False
    profile: tuple[int, ...] = ()  # ranks
    upstream: bool = False
    with_report: bool = True
    ignore_env_check: bool = False
    launcher: str = "native"  # see suite.launch.registry
    launcher_settings: object = None  # its own options, as its entry reads them; None: their defaults
    image: str | None = None
    accept_eula: bool = False
    render_only: bool = False  # write scripts, run nothing
    render: RenderFor | None = None
    volume_claim: str = "labscale"
