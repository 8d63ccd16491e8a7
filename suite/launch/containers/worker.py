"""The worker of an image of this machine's engine, which names it by labels."""

import os
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from suite.errors import ContainerError
from suite.external import docker_engine
from suite.external.container_spec import ContainerSpec, ImageFacts, Mount
from suite.external.docker_engine import Engine
from suite.files.cache import cache_root
from suite.install.worker import Worker
from suite.launch.images.worker import provision_in_image
from suite.schema.record import Assets

BUILD_TIMEOUT_S: Final = 600.0
PYTHON_LABEL: Final = "labscale.worker-python"
PINS_LABEL: Final = "labscale.pins.worker.sha256"


def provision_in_container(
    engine: Engine, image: ImageFacts, *, project_root: Path, assets: Assets, on_message: Callable[[str], None]
) -> Worker:
    """Return the worker of an image, ready to run.

    Raises:
        ContainerError: it is not an image of labscale.
        WorkerEnvironmentError: the assets cannot be built.

    """
    if PYTHON_LABEL not in image.labels or PINS_LABEL not in image.labels:
        raise ContainerError(
            f"{', '.join(image.tags) or image.image_id} is no worker image: it lacks the labels {PYTHON_LABEL} and "
            f"{PINS_LABEL}. Build one with `nox -s build`."
        )
    cache = cache_root()

    def run(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        finished = engine.run_to_end(
            _spec(image, argv, env, project_root=project_root, writable=cache, is_rootless=engine.is_rootless),
            timeout_s=BUILD_TIMEOUT_S,
        )
        return subprocess.CompletedProcess(argv, finished.exit_code, finished.stdout, finished.stderr)

    return provision_in_image(
        Path(image.labels[PYTHON_LABEL]),
        image.labels[PINS_LABEL],
        assets=assets,
        project_root=project_root,
        run=run,
        on_message=on_message,
    )


def _spec(
    image: ImageFacts,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    project_root: Path,
    writable: Path,
    is_rootless: bool,
) -> ContainerSpec:
    return ContainerSpec(
        name=f"labscale-{uuid.uuid4().hex[:12]}",
        image=image.image_id,
        argv=tuple(argv),
        env={**env, "HOME": "/tmp", "USER": "labscale", "CUDA_VISIBLE_DEVICES": ""},  # noqa: S108  of the container
        user="0:0" if is_rootless else f"{os.getuid()}:{os.getgid()}",
        working_dir=str(project_root),
        mounts=(
            Mount(source=str(project_root), target=str(project_root), read_only=True),
            Mount(source=str(writable), target=str(writable)),
        ),
        labels=docker_engine.owner_label(),
    )
