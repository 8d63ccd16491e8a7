"""The launcher ``apptainer``: rounds in an Apptainer image. Jobs of Slurm take what it provides too."""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.env_check import report
from suite.env_check.request import Request
from suite.errors import ContainerError, UsageError
from suite.external import parent_death
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.files.wording import last_lines
from suite.install.pins import sha256
from suite.install.worker import RunPython, worker_pins
from suite.launch.apptainer.run import PROGRAM, ApptainerOptions, command, render, run
from suite.launch.images import eula
from suite.launch.images.table import SUITE_PYTHON, find_image
from suite.launch.images.worker import provision_in_image
from suite.launch.native.launcher import all_of
from suite.launch.runtime import Asked, LauncherEntry, NoSettings, Runtime
from suite.options.options import Options
from suite.schema.rank_protocol import travelling


def in_apptainer(asked: Asked) -> Runtime:
    """The worker of the image, started by Apptainer. A job of Slurm wraps its command in the same way."""
    of_run = _apptainer_options(asked.options)
    eula.require(stack=asked.stack, accepted=asked.options.place.accept_eula)
    cache, with_gpus, settings = cache_root(), asked.device == "cuda", travelling(os.environ)

    def inside(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        rendered, added = command(argv, {**settings, **env}, of_run, writable=(cache,), with_gpus=with_gpus)
        return parent_death.run(rendered, added)

    worker = provision_in_image(  # a file has no labels that name its Python
        Path(find_image(asked.stack, ROOT).worker_python),
        None if asked.stack == "isaacsim" else sha256(worker_pins(ROOT, asked.stack)),
        assets=asked.options.setup.assets,
        project_root=ROOT,
        run=inside,
        on_message=asked.say,
    )
    of_run = replace(of_run, asset_root=worker.asset_root, cache_dir=worker.cache_dir)

    return Runtime(
        worker=worker,
        launch=functools.partial(run, options=of_run),
        check=lambda: _check(asked, of_run.image, worker.python, inside),
        python_path=None,
        image_digest=of_run.image_digest,
        command=lambda arguments: command(
            (SUITE_PYTHON, *arguments), settings, of_run, writable=(cache,), with_gpus=with_gpus
        ),
        wrap=functools.partial(render, options=of_run),
    )


def _check(asked: Asked, image: Path, worker_python: Path, inside: RunPython) -> report.Report:
    """Run env_check in the image."""
    request = Request(stack=asked.stack, device=asked.device).inside_image(worker_python)
    done = inside((SUITE_PYTHON, *request.arguments()), {})
    try:
        return report.read(done.stdout)
    except ValueError as error:
        raise ContainerError(
            f"env_check did not run in {image}, exit code {done.returncode}: {error}\n{last_lines(done.stderr, 5)}\n"
            "Take an image that `nox -s build` made: apptainer build FILE.sif docker-daemon:TAG."
        ) from error


def _apptainer_options(options: Options) -> ApptainerOptions:
    if options.place.image is None:
        raise UsageError("--launcher apptainer needs --image, the path of a .sif file or of a sandbox folder.")
    image = Path(options.place.image).absolute()
    if not image.exists():
        raise UsageError(f"--image {image} does not exist. Make one: apptainer build FILE.sif docker-daemon:TAG.")
    if shutil.which(PROGRAM) is None:
        raise ContainerError(f"{PROGRAM} is not on PATH here. Load its module, or use --launcher container or native.")
    return ApptainerOptions(
        image=image,
        project_root=ROOT,
        accept_eula=options.place.accept_eula,
        image_digest=f"sha256:{sha256(image)}" if image.is_file() else None,
    )


APPTAINER: Final = LauncherEntry(
    name="apptainer",
    resources=lambda _, machine: all_of(machine),
    provision=lambda _, asked: in_apptainer(asked),
    settings=NoSettings,
    image="a .sif file or a sandbox folder",
    always_in_image=True,
)
