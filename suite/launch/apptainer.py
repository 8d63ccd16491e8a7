"""The launcher ``apptainer``: rounds in an Apptainer image. Clusters have no container engine.

A launch is rendered as an Apptainer command, which the native launcher runs, or a job of Slurm. Variables are passed as
APPTAINERENV_NAME, because ``--env`` splits values at commas.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.errors import ContainerError, UsageError
from suite.external import parent_death
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install.pins import sha256
from suite.install.worker import worker_pins
from suite.launch import native
from suite.launch.contract import TO_ITS_END, Asked, Command, LauncherEntry, NoSettings, RunControl, Runtime
from suite.launch.images.table import SUITE_PYTHON, find_image
from suite.launch.images.worker import LICENCE_ACCEPTED, ImageOptions, provision_in_image, report_of, require_licence
from suite.options.options import Options
from suite.schema.rank_protocol import LaunchResult, travelling
from suite.schema.record import Launch

PROGRAM: Final = "apptainer"
VARIABLE_PREFIX: Final = "APPTAINERENV_"


@dataclass(frozen=True, kw_only=True)
class ApptainerOptions(ImageOptions):
    image: Path  # .sif file or sandbox folder


def run(launch: Launch, control: RunControl = TO_ITS_END, *, options: ApptainerOptions) -> LaunchResult:
    """Run ``launch`` inside the image; see ``suite.launch.contract``."""
    return native.run(apptainer_launch(launch, options), control)


def apptainer_launch(launch: Launch, options: ApptainerOptions) -> Launch:
    """Wrap the command of ``launch``; its program is a path inside the image."""
    with_gpus = launch.case.device == "cuda"
    argv, env = command(launch.argv, launch.env, options, writable=Path(launch.run_dir), with_gpus=with_gpus)
    return replace(launch, argv=argv, env=env)


def command(
    argv: Sequence[str],
    env: Mapping[str, str],
    options: ApptainerOptions,
    *,
    writable: Path,
    with_gpus: bool,
) -> Command:
    """Return the command that runs ``argv`` inside the image, and the variables to add to its environment."""
    outside = (
        PROGRAM,
        "exec",
        "--cleanenv",  # a run is the same for everyone
        "--no-home",
        *(("--nv",) if with_gpus else ()),
        *_binds(options.folders(writable)),
        "--pwd",
        str(options.project_root),
        str(options.image),
        *argv,
    )
    inside = {**env, "XDG_CACHE_HOME": "/tmp", "XDG_CONFIG_HOME": "/tmp"}  # noqa: S108  there is no home
    if options.accept_eula:
        inside |= LICENCE_ACCEPTED
    return outside, {f"{VARIABLE_PREFIX}{name}": value for name, value in inside.items()}


def _binds(folders: Mapping[str, str]) -> Iterator[str]:
    for folder, mode in folders.items():
        if "," in folder or ":" in folder:
            raise UsageError(f"{folder} has a comma or a colon, at which Apptainer splits paths. Use another folder.")
        yield from ("--bind", f"{folder}:{folder}:{mode}")


def in_apptainer(asked: Asked) -> Runtime:
    """The worker of the image, started by Apptainer. A job of Slurm wraps its command in the same way."""
    of_run = _apptainer_options(asked.options)
    require_licence(stack=asked.stack, accepted=of_run.accept_eula)
    cache, settings = cache_root(), travelling(os.environ)

    def wrapped(argv: Sequence[str], env: Mapping[str, str]) -> Command:
        return command(argv, {**settings, **env}, of_run, writable=cache, with_gpus=asked.device == "cuda")

    def inside(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return parent_death.run(*wrapped(argv, env))

    worker = provision_in_image(  # a file has no labels that name its Python
        Path(find_image(asked.stack, ROOT).worker_python),
        None if asked.stack == "isaacsim" else sha256(worker_pins(asked.stack)),
        assets=asked.options.setup.assets,
        run=inside,
        on_message=asked.say,
    )
    of_run = replace(of_run, asset_root=worker.asset_root, cache_dir=worker.cache_dir)  # for what follows, inside too
    request = asked.request.inside_image(worker.python)
    return Runtime(
        worker=worker,
        launch=functools.partial(run, options=of_run),
        check=lambda: report_of(
            inside((SUITE_PYTHON, *request.arguments()), {}),
            str(of_run.image),
            next_step="Take an image that `nox -s build` made: apptainer build FILE.sif docker-daemon:TAG.",
        ),
        python_path=None,
        image_digest=f"sha256:{sha256(of_run.image)}" if of_run.image.is_file() else None,  # a folder has none
        command=lambda arguments: wrapped((SUITE_PYTHON, *arguments), {}),
        wrap=functools.partial(apptainer_launch, options=of_run),
    )


def _apptainer_options(options: Options) -> ApptainerOptions:
    if options.place.image is None:
        raise UsageError("--launcher apptainer needs --image, the path of a .sif file or of a sandbox folder.")
    image = Path(options.place.image).absolute()
    if not image.exists():
        raise UsageError(f"--image {image} does not exist. Make one: apptainer build FILE.sif docker-daemon:TAG.")
    if shutil.which(PROGRAM) is None:
        raise ContainerError(f"{PROGRAM} is not on PATH here. Load its module, or use --launcher container or native.")
    return ApptainerOptions(image=image, project_root=ROOT, accept_eula=options.place.accept_eula)


APPTAINER: Final = LauncherEntry(
    name="apptainer",
    resources=lambda _, machine: native.all_of(machine),
    provision=lambda _, asked: in_apptainer(asked),
    settings=NoSettings,
    image="a .sif file or a sandbox folder",
    always_in_image=True,
)
