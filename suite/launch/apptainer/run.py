"""Render a launch as an Apptainer command, which the native launcher runs. Clusters have no container engine.

Variables are passed as APPTAINERENV_NAME, because ``--env`` splits values at commas.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Final

from suite.errors import UsageError
from suite.launch.images import eula
from suite.launch.native.run import run as run_native
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch

PROGRAM: Final = "apptainer"
VARIABLE_PREFIX: Final = "APPTAINERENV_"


@dataclass(frozen=True, kw_only=True)
class ApptainerOptions:
    """The image, the folders that are mounted into it, and the licence."""

    image: Path  # .sif file or sandbox folder
    project_root: Path
    asset_root: Path | None = None
    cache_dir: Path | None = None
    accept_eula: bool = False  # of NVIDIA's Isaac Sim, by the person who runs it
    image_digest: str | None = None  # sha256:… of a .sif file; None for a folder


def run(
    launch: Launch,
    *,
    options: ApptainerOptions,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end inside the image; see ``suite.launch.Launcher``."""
    result = run_native(render(launch, options), on_progress=on_progress, stop=stop)
    return replace(result, image_digest=options.image_digest)


def render(launch: Launch, options: ApptainerOptions) -> Launch:
    """Wrap the command of ``launch``; its program is a path inside the image."""
    argv, env = command(
        launch.argv,
        launch.env,
        options,
        writable=(options.cache_dir, Path(launch.run_dir)),
        with_gpus=launch.case.device == "cuda",
    )
    return replace(launch, argv=argv, env=env)


def command(
    argv: Sequence[str],
    env: Mapping[str, str],
    options: ApptainerOptions,
    *,
    writable: Sequence[Path | None] = (),
    with_gpus: bool,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that runs ``argv`` inside the image, and the variables to add to its environment."""
    outside = (
        PROGRAM,
        "exec",
        "--cleanenv",  # a run is the same for everyone
        "--no-home",
        *(("--nv",) if with_gpus else ()),
        *_binds(options, writable),
        "--pwd",
        str(options.project_root),
        str(options.image),
        *argv,
    )
    inside = {**env, "XDG_CACHE_HOME": "/tmp", "XDG_CONFIG_HOME": "/tmp"}  # noqa: S108  there is no home
    if options.accept_eula:
        inside |= eula.ACCEPTED
    return outside, {f"{VARIABLE_PREFIX}{name}": value for name, value in inside.items()}


def _binds(options: ApptainerOptions, writable: Sequence[Path | None]) -> Iterator[str]:
    folders = [(options.project_root, "ro"), (options.asset_root, "ro"), *((path, "rw") for path in writable)]
    present = [(path, mode) for path, mode in folders if path is not None]
    for path, _ in present:
        if "," in str(path) or ":" in str(path):
            raise UsageError(f"{path} has a comma or a colon, at which Apptainer splits paths. Use another folder.")
    for path, mode in sorted(present, key=lambda bind: len(bind[0].parts)):  # an inner folder after its outer one
        yield from ("--bind", f"{path}:{path}:{mode}")
