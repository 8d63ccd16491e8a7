"""The launcher ``container``: rounds in containers of this machine's engine. Also env_check inside an image.

Every folder is mounted under the path that it has here, so only the worker's Python differs from a native launch.
Project and assets are read-only. The container is always removed.
"""

import functools
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.errors import ContainerError, UsageError
from suite.external import docker_engine
from suite.external.container_spec import GPU_CAPABILITIES, ContainerSpec, Gpus, ImageFacts
from suite.external.docker_engine import Container, Engine
from suite.external.nvml.gpus import whole_uuids
from suite.files.cache import cache_root
from suite.files.input_file import read_text
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch.contract import TO_ITS_END, Asked, LauncherEntry, RunControl, Runtime
from suite.launch.images import build
from suite.launch.images.table import PINS_LABEL, PYTHON_LABEL, read_images
from suite.launch.images.worker import LICENCE_ACCEPTED, ImageOptions, provision_in_image, require_licence
from suite.launch.native import all_of
from suite.launch.processes import DUMP_STACKS, STACK_DUMP_S
from suite.launch.telemetry_sampler import sampling
from suite.launch.watch import LOG, Watch, prepare
from suite.options.declaration import option
from suite.options.types import above_zero
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Assets, Device, Launch

GIB: Final = 2**30
CANNOT_EXECUTE: Final = (126, 127)  # a shell's exit codes; torchrun has neither
BUILD_TIMEOUT_S: Final = 600.0  # of the offline assets
NVIDIA_NODE: Final = Path("/dev/nvidiactl")


@dataclass(frozen=True, kw_only=True)
class ContainerOptions(ImageOptions):
    """How the containers of a campaign run."""

    gpus: Gpus = None
    shm_gb: float | None = None  # size of a /dev/shm of its own; None: the host's


def run(
    launch: Launch,
    control: RunControl = TO_ITS_END,
    *,
    engine: Engine,
    image: ImageFacts,
    options: ContainerOptions,
) -> LaunchResult:
    """Run ``launch`` in a container of ``image``; see ``suite.launch.contract``."""
    docker_engine.remove_abandoned(engine)
    run_dir = Path(launch.run_dir)
    prepare(run_dir, launch.case)
    spec = container_spec(launch, image.image_id, options, user=_user(engine))
    with engine.container(spec) as container, sampling(launch):
        watch = Watch(launch, control)
        container.start()
        ended_by = watch.wait(container.exit_code)
        exit_code = _end(container, ended_by, launch.grace_s)
        result = watch.result(exit_code, ended_by)
        out_of_memory = ended_by is None and exit_code != 0 and container.was_out_of_memory()
    if ended_by is None and exit_code in CANNOT_EXECUTE:
        raise ContainerError(
            f"The image {image.image_id} cannot start {launch.argv[0]}: {read_text(run_dir / LOG).strip()}. Take "
            "the worker's Python of the image, which its label labscale.worker-python names."
        )
    return replace(result, out_of_memory=out_of_memory)


def check_options(engine: Engine, image: ImageFacts, options: ContainerOptions) -> None:
    """Refuse a run that would not be what the user asked for.

    Raises ContainerError if podman is asked for GPUs, or a licence is not accepted.
    """
    if options.gpus is not None and engine.is_podman:
        raise ContainerError(
            f"{engine.name} ignores requests for GPUs through its Docker API: the run would go on without any. Use "
            "Docker for GPU runs (unset DOCKER_HOST), or podman with --device cpu."
        )
    require_licence(stack=image.labels.get("labscale.stack"), accepted=options.accept_eula)


def container_spec(launch: Launch, image_id: str, options: ContainerOptions, *, user: str) -> ContainerSpec:
    """The container of one round."""
    return ContainerSpec(
        image=image_id,
        # The engine's own log would be gone with the container; this one can be read while it runs.
        argv=("/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1', f"{launch.run_dir}/{LOG}", *launch.argv),
        env={**launch.env, **_environment(options)},
        user=user,
        working_dir=str(options.project_root),
        folders=options.folders(Path(launch.run_dir)),
        gpus=options.gpus,
        network="host",  # NCCL and the rendezvous use the host's own interfaces
        ipc="host" if options.shm_gb is None else "private",
        shm_bytes=round(options.shm_gb * GIB) if options.shm_gb is not None else None,
        labels={"labscale.case": launch.case.case_id, "labscale.round": str(launch.round)},
    )


def requested_gpus(device: Device, environ: Mapping[str, str]) -> Gpus:
    """The GPUs to ask the engine for: those of CUDA_VISIBLE_DEVICES, all if it is not set, none for a CPU run.

    CUDA accepts the beginning of a UUID; NVIDIA's container toolkit needs all of it.
    """
    if device == "cpu":
        return None
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return "all"
    names = (name.strip() for name in visible.split(","))
    chosen = tuple(itertools.takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    return whole_uuids(chosen) or None


def _environment(options: ContainerOptions) -> dict[str, str]:
    env = {
        # A user whom the image does not know has no home and no name, and torch asks for both.
        "HOME": "/tmp",  # noqa: S108  of the container
        "USER": "labscale",
        "LOGNAME": "labscale",
        "XDG_RUNTIME_DIR": "/tmp",  # noqa: S108
        # Some engines give every container the NVIDIA runtime, which reads these.
        "NVIDIA_VISIBLE_DEVICES": "void",
    }
    if options.gpus is not None:
        env["NVIDIA_VISIBLE_DEVICES"] = "all" if options.gpus == "all" else ",".join(options.gpus)
        env["NVIDIA_DRIVER_CAPABILITIES"] = ",".join(GPU_CAPABILITIES[1:])
    if options.accept_eula:
        env |= LICENCE_ACCEPTED
    return env


def _user(engine: Engine) -> str:
    """The caller. A rootless engine shows its own user as root."""
    return "0:0" if engine.is_rootless else f"{os.getuid()}:{os.getgid()}"


def _end(container: Container, ended_by: EndedBy | None, grace_s: float) -> int:
    """End the container and return the exit code of its program."""
    if ended_by in ("timeout", "hung"):
        container.execute(("/bin/sh", "-c", DUMP_STACKS))
        time.sleep(STACK_DUMP_S)
    if ended_by is not None:
        container.stop(grace_s)
    exit_code = container.exit_code(wait_s=0)
    if exit_code is None:
        raise ContainerError("The engine stopped the container, and says that it still runs. See the engine's own log.")
    return exit_code


def check_image(name: str, request: Request) -> Report:
    """Run env_check inside an image: the one that ``build NAME`` made, or any image of labscale's by its tag.

    Raises ContainerError if there is no such image, or it has no env_check.
    """
    engine = Engine.connect()
    built = name in read_images(ROOT)
    image = build.find_built(engine, name) if built else engine.find_image(name)
    has_gpu = NVIDIA_NODE.exists() or request.stack != "kitless"
    device = request.device or ("cuda" if has_gpu else "cpu")
    gpus = requested_gpus(device, os.environ)
    return build.env_check_inside(engine, image, replace(request, device=device), gpus=gpus)


def provision_in_container(
    engine: Engine, image: ImageFacts, *, assets: Assets, on_message: Callable[[str], None]
) -> Worker:
    """Return the worker of an image, ready to run. Labels of the image name its Python and its pins.

    Raises:
        ContainerError: it is not an image of labscale.
        WorkerEnvironmentError: the assets cannot be built.

    """
    if PYTHON_LABEL not in image.labels or PINS_LABEL not in image.labels:
        raise ContainerError(
            f"{', '.join(image.tags) or image.image_id} is no worker image: it lacks the labels {PYTHON_LABEL} and "
            f"{PINS_LABEL}. Build one with `nox -s build`."
        )

    def run(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        spec = ContainerSpec(
            image=image.image_id,
            argv=tuple(argv),
            env={**env, "HOME": "/tmp", "USER": "labscale", "CUDA_VISIBLE_DEVICES": ""},  # noqa: S108  of the container
            user=_user(engine),
            working_dir=str(ROOT),
            folders=ImageOptions(project_root=ROOT).folders(cache_root()),
        )
        return engine.run_to_end(spec, timeout_s=BUILD_TIMEOUT_S)

    python, pins_sha256 = Path(image.labels[PYTHON_LABEL]), image.labels[PINS_LABEL]
    return provision_in_image(python, pins_sha256, assets=assets, run=run, on_message=on_message)


@dataclass(frozen=True, kw_only=True)
class ContainerSettings:
    shm_gb: float | None = option(
        "with --launcher container: give each container a /dev/shm of this size (default: the host's)",
        type=above_zero, metavar="GB",
    )  # fmt: skip


def _provision(settings: ContainerSettings, asked: Asked) -> Runtime:
    """The worker of an image, in a container of this machine's engine for each round."""
    options = asked.options
    if options.setup.worker_python is not None:
        raise UsageError("--worker-python is of this machine, but containers have their own. Leave one of the two out.")
    engine = Engine.connect()
    tag = options.place.image
    image = build.find_built(engine, asked.stack) if tag is None else engine.find_image(tag)
    asked.say(f"Runs take place in containers of {', '.join(image.tags) or image.image_id} ({engine.name})")
    of_run = ContainerOptions(
        project_root=ROOT,
        gpus=requested_gpus(asked.device, os.environ),
        shm_gb=settings.shm_gb,
        accept_eula=options.place.accept_eula,
    )
    check_options(engine, image, of_run)
    worker = provision_in_container(engine, image, assets=options.setup.assets, on_message=asked.say)
    of_run = replace(of_run, asset_root=worker.asset_root, cache_dir=worker.cache_dir)
    return Runtime(
        worker=worker,
        launch=functools.partial(run, engine=engine, image=image, options=of_run),
        check=lambda: build.env_check_inside(engine, image, asked.request, gpus=of_run.gpus),
        python_path=None,
        image_digest=image.digest,
    )


CONTAINER: Final = LauncherEntry(
    name="container",
    resources=lambda _, machine: all_of(machine),
    provision=_provision,
    settings=ContainerSettings,
    image="an image of this machine's engine (default: what `build` made)",
    always_in_image=True,
    takes_turns=True,
)
