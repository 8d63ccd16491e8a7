"""Rounds in containers of this machine's engine, and env_check inside an image."""

import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.errors import UsageError
from suite.external.container_spec import ImageFacts
from suite.external.docker_engine import Engine
from suite.images import build
from suite.images.table import read_images
from suite.launch.containers import run as container
from suite.launch.containers import worker as container_worker
from suite.launch.runtime import Runtime, Say
from suite.options.options import ROOT, Options
from suite.schema.record import Device, Stack

NVIDIA_NODE: Final = Path("/dev/nvidiactl")


def in_containers(options: Options, *, stack: Stack, device: Device, on_message: Say) -> Runtime:
    """The worker of an image, in a container of this machine's engine for each round."""
    if options.worker_python is not None:
        raise UsageError("--worker-python is of this machine, but containers have their own. Leave one of the two out.")
    engine = Engine.connect()
    image = (
        build.find_built(engine, stack, project_root=ROOT)
        if options.image is None
        else engine.find_image(options.image)
    )
    on_message(f"Rounds run in containers of {', '.join(image.tags) or image.image_id} ({engine.name})")
    gpus = container.requested_gpus(device, os.environ)
    of_run = container.ContainerOptions(
        project_root=ROOT, gpus=gpus, shm_gb=options.shm_gb, accept_eula=options.accept_eula
    )
    container.check_options(engine, image, of_run)
    worker = container_worker.provision_in_image(
        engine, image, project_root=ROOT, assets=options.assets, on_message=on_message
    )
    of_run = replace(of_run, asset_root=worker.asset_root, cache_dir=worker.cache_dir)

    def check() -> Report:
        return _check_inside(engine, image, Request(stack=stack, device=device))

    return Runtime(
        worker=worker,
        launch=functools.partial(container.run, engine=engine, image=image, options=of_run),
        check=check,
        python_path=None,
        image_digest=image.digest,
    )


def check_image(name: str, request: Request) -> Report:
    """Run env_check inside an image: the one that ``build NAME`` made, or any image of labscale's by its tag.

    Raises:
        ContainerError: there is no such image, or it holds no env_check.
    """
    engine = Engine.connect()
    built = name in read_images(ROOT)
    image = build.find_built(engine, name, project_root=ROOT) if built else engine.find_image(name)
    has_gpu = NVIDIA_NODE.exists() or request.stack != "kitless"
    return _check_inside(engine, image, replace(request, device=request.device or ("cuda" if has_gpu else "cpu")))


def _check_inside(engine: Engine, image: ImageFacts, request: Request) -> Report:
    python = image.labels.get(container_worker.PYTHON_LABEL)  # None: an image that is not labscale's
    request = request.inside_image(Path(python) if python else None)
    gpus = container.requested_gpus(request.device or "cpu", os.environ)
    return build.env_check_inside(engine, image.image_id, request, gpus=gpus)
