"""Run one round in a container of this machine's engine.

Every folder is mounted under the path that it has here, so only the worker's Python differs from a native launch.
Project and assets are read-only. The container is always removed.
"""

import itertools
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Final, Literal

from suite.errors import ContainerError
from suite.external import container_owner
from suite.external.container_spec import GPU_CAPABILITIES, ContainerSpec, Gpus, ImageFacts, Limit, Mount
from suite.external.docker_engine import Container, Engine
from suite.external.nvml.visible import whole_uuids
from suite.files.input_file import read_text
from suite.launch.images import eula
from suite.launch.telemetry_sampler import sampling
from suite.launch.watch import LOG, Watch, prepare, wait
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Device, Launch

GIB: Final = 2**30
CANNOT_EXECUTE: Final = (126, 127)  # a shell's exit codes; torchrun has neither
STACK_DUMP_S: Final = 1.0  # for the ranks to write their stacks
# For every process with a handler for SIGUSR1, as the ranks have faulthandler: bit 9 of its caught signals.
DUMP_STACKS: Final = """
for status in $(grep -lE '^SigCgt:.*[2367abef][0-9a-f]{2}$' /proc/[0-9]*/status); do
    process=${status#/proc/}
    kill -USR1 "${process%/status}"
done
"""


@dataclass(frozen=True, kw_only=True)
class ContainerOptions:
    """How the containers of a campaign run."""

    project_root: Path
    asset_root: Path | None = None
    cache_dir: Path | None = None  # for compiled kernels; kept between rounds
    gpus: Gpus = None
    network: Literal["host", "none"] = "host"  # NCCL and the rendezvous use the host's own interfaces
    shm_gb: float | None = None  # size of a /dev/shm of its own; None: the host's
    memory_gb: float | None = None
    limits: tuple[Limit, ...] = ()  # memlock -1 needs an engine with that permission
    user: tuple[int, int] | None = None  # uid and gid; None is the caller, who owns the results then
    accept_eula: bool = False  # of NVIDIA's Isaac Sim, by the person who runs it


def run(
    launch: Launch,
    *,
    engine: Engine,
    image: ImageFacts,
    options: ContainerOptions,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
    waits: Callable[[], bool] | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end in a container of ``image``; see ``suite.launch.TurnsLauncher``.

    Raises:
        StoreError: the run directory cannot be written, or contains a finished round.
        ContainerError: the engine refuses, or the image has no such program.

    """
    check_options(engine, image, options)
    container_owner.remove_abandoned(engine)
    run_dir = Path(launch.run_dir)
    prepare(run_dir, launch.case)
    spec = render(
        launch,
        image.image_id,
        options,
        name=f"labscale-{uuid.uuid4().hex[:12]}",
        user=_user(options, is_rootless=engine.is_rootless),
        owner=container_owner.label(),
    )
    with engine.container(spec) as container, sampling(run_dir, launch.case):
        started_utc = datetime.now(UTC).isoformat(timespec="seconds")
        started_s = time.monotonic()
        container.start()
        watch = Watch(launch.case, run_dir, on_progress)
        ended_by = wait(container.exit_code, watch, stop, waits)
        exit_code = _end(container, ended_by, launch.grace_s)
        wall_time_s = time.monotonic() - started_s
        out_of_memory = ended_by is None and exit_code != 0 and container.was_out_of_memory()
    watch.look()
    if ended_by is None and exit_code in CANNOT_EXECUTE:
        raise ContainerError(
            f"The image {image.image_id} cannot start {launch.argv[0]}: {read_text(run_dir / LOG).strip()}. Take "
            "the worker's Python of the image, which its label labscale.worker-python names."
        )
    return LaunchResult(
        exit_code=exit_code,
        ended_by=ended_by,
        started_utc=started_utc,
        wall_time_s=wall_time_s,
        out_of_memory=out_of_memory,
        image_digest=image.digest,
    )


def check_options(engine: Engine, image: ImageFacts, options: ContainerOptions) -> None:
    """Refuse a run that would not be what the user asked for.

    Raises:
        ContainerError: podman is asked for GPUs, or a licence is not accepted.

    """
    if options.gpus is not None and engine.is_podman:
        raise ContainerError(
            f"{engine.name} ignores requests for GPUs through its Docker API: the run would go on without any. Use "
            "Docker for GPU runs (unset DOCKER_HOST), or podman with --device cpu."
        )
    eula.require(stack=image.labels.get("labscale.stack"), accepted=options.accept_eula)


def render(
    launch: Launch, image_id: str, options: ContainerOptions, *, name: str, user: str, owner: Mapping[str, str]
) -> ContainerSpec:
    """The container of one round."""
    private_shm = options.shm_gb is not None
    return ContainerSpec(
        name=name,
        image=image_id,
        # The engine's own log would be gone with the container; this one can be read while it runs.
        argv=("/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1', f"{launch.run_dir}/{LOG}", *launch.argv),
        env={**launch.env, **_environment(options)},
        user=user,
        working_dir=str(options.project_root),
        mounts=_mounts(launch, options),
        gpus=options.gpus,
        network=options.network,
        ipc="private" if private_shm else "host",
        shm_bytes=round(options.shm_gb * GIB) if options.shm_gb is not None else None,
        memory_bytes=round(options.memory_gb * GIB) if options.memory_gb is not None else None,
        limits=options.limits,
        labels={**owner, "labscale.case": launch.case.case_id, "labscale.round": str(launch.round)},
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
        env |= eula.ACCEPTED
    return env


def _mounts(launch: Launch, options: ContainerOptions) -> tuple[Mount, ...]:
    read_only = [options.project_root, *([options.asset_root] if options.asset_root else [])]
    writable = [Path(launch.run_dir), *([options.cache_dir] if options.cache_dir else [])]
    mounts = [(path, True) for path in read_only] + [(path, False) for path in writable]
    # A folder inside another is mounted after it.
    return tuple(
        Mount(source=str(path), target=str(path), read_only=is_read_only)
        for path, is_read_only in sorted(mounts, key=lambda mount: len(mount[0].parts))
    )


def _user(options: ContainerOptions, *, is_rootless: bool) -> str:
    """The caller. A rootless engine shows its own user as root."""
    if options.user is not None:
        return "{}:{}".format(*options.user)
    return "0:0" if is_rootless else f"{os.getuid()}:{os.getgid()}"


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
