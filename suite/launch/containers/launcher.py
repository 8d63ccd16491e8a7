"""The launcher ``container``: rounds in containers of this machine's engine. Also env_check inside an image."""

import argparse
import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.errors import UsageError
from suite.external.container_spec import ImageFacts
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.containers.run import ContainerOptions, check_options, requested_gpus, run
from suite.launch.containers.worker import PYTHON_LABEL, provision_in_container
from suite.launch.images import build
from suite.launch.images.table import read_images
from suite.launch.native.launcher import all_of
from suite.launch.runtime import Asked, LauncherEntry, Runtime
from suite.options.types import above_zero

NVIDIA_NODE: Final = Path("/dev/nvidiactl")


@dataclass(frozen=True, kw_only=True)
class ContainerSettings:
    shm_gb: float | None = None  # size of a /dev/shm of its own; None: the host's


def check_image(name: str, request: Request) -> Report:
    """Run env_check inside an image: the one that ``build NAME`` made, or any image of labscale's by its tag.

    Raises:
        ContainerError: there is no such image, or it has no env_check.
    """
    engine = Engine.connect()
    built = name in read_images(ROOT)
    image = build.find_built(engine, name, project_root=ROOT) if built else engine.find_image(name)
    has_gpu = NVIDIA_NODE.exists() or request.stack != "kitless"
    return _check_inside(engine, image, replace(request, device=request.device or ("cuda" if has_gpu else "cpu")))


def _provision(settings: ContainerSettings, asked: Asked) -> Runtime:
    """The worker of an image, in a container of this machine's engine for each round."""
    options = asked.options
    if options.setup.worker_python is not None:
        raise UsageError("--worker-python is of this machine, but containers have their own. Leave one of the two out.")
    engine = Engine.connect()
    image = (
        build.find_built(engine, asked.stack, project_root=ROOT)
        if options.place.image is None
        else engine.find_image(options.place.image)
    )
    asked.say(f"Rounds run in containers of {', '.join(image.tags) or image.image_id} ({engine.name})")
    of_run = ContainerOptions(
        project_root=ROOT,
        gpus=requested_gpus(asked.device, os.environ),
        shm_gb=settings.shm_gb,
        accept_eula=options.place.accept_eula,
    )
    check_options(engine, image, of_run)
    worker = provision_in_container(engine, image, project_root=ROOT, assets=options.setup.assets, on_message=asked.say)
    of_run = replace(of_run, asset_root=worker.asset_root, cache_dir=worker.cache_dir)
    launch = functools.partial(run, engine=engine, image=image, options=of_run)
    return Runtime(
        worker=worker,
        launch=launch,
        launch_in_turns=launch,
        check=lambda: _check_inside(engine, image, Request(stack=asked.stack, device=asked.device, everything=False)),
        python_path=None,
        image_digest=image.digest,
    )


def _check_inside(engine: Engine, image: ImageFacts, request: Request) -> Report:
    python = image.labels.get(PYTHON_LABEL)  # None: an image that is not labscale's
    request = request.inside_image(Path(python) if python else None)
    gpus = requested_gpus(request.device or "cpu", os.environ)
    return build.env_check_inside(engine, image.image_id, request, gpus=gpus)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shm-gb",
        type=above_zero,
        metavar="GB",
        help="with --launcher container: give each container a /dev/shm of this size (default: the host's)",
    )


CONTAINER: Final = LauncherEntry(
    name="container",
    resources=lambda _, machine: all_of(machine),
    provision=_provision,
    settings=ContainerSettings,
    add_arguments=_add_arguments,
    image="an image of this machine's engine (default: what `build` made)",
    always_in_image=True,
    takes_turns=True,
)
