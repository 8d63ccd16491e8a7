"""Where the rounds of a campaign run: on this machine itself, in containers of its engine, or in an Apptainer image.

Each gives the same three things: a worker, a launcher, and what env_check says of that place.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite import build, container_worker, environment, node_facts, pyxis_place, slurm_place, ssh_place
from suite.container_spec import ImageFacts
from suite.docker_engine import Engine
from suite.env_check.report import Report, env_check
from suite.env_check.report import read as read_report
from suite.env_check.request import Request
from suite.errors import ContainerError, UsageError
from suite.images import SUITE_PYTHON, find_image, read_images
from suite.launch import Launcher, apptainer, container, emulated, native, pyxis, slurm, ssh
from suite.launch.slurm import SlurmPlace
from suite.launch.slurm_script import NodeCheck, SlurmOptions
from suite.options import ROOT, Options
from suite.pins import sha256
from suite.provision import Worker, cache_root, find_assets, provision_worker, worker_pins
from suite.resources import UNBOUNDED, Resources
from suite.schema import Device, Environment, Launch, Stack

NVIDIA_NODE: Final = Path("/dev/nvidiactl")

Say = Callable[[str], None]
Command = tuple[tuple[str, ...], dict[str, str]]  # and what to add to its environment


@dataclass(frozen=True, kw_only=True)
class Runtime:
    worker: Worker
    launch: Launcher
    check: Callable[[], Report]  # env_check, in the place where the rounds run
    python_path: str | None  # of the caller, where it means the same
    image_digest: str | None = None
    command: Callable[[Sequence[str]], Command] = lambda arguments: ((sys.executable, *arguments), {})
    wrap: Callable[[Launch], Launch] | None = None  # into a container, for a program that starts it elsewhere
    machine: Environment | None = None  # where rounds run, unless it is this machine
    is_submitted: Callable[[Path], bool] = lambda _: False  # whether a run directory has a job that goes on without us
    write_script: Callable[[Launch], Path] | None = None  # for a scheduler


def resources(options: Options, machine: Environment) -> Resources:
    """How much the place that the user chose can run.

    Raises:
        UsageError: an option is of another launcher than the one chosen.
        SchedulerError: Slurm does not answer, or has no such partition.
    """
    if (options.launcher == "emulated") != (options.emulate_nodes is not None):
        raise UsageError(
            f"--emulate-nodes N takes parts of this machine for nodes, and no --launcher but its own (emulated); got"
            f" --launcher {options.launcher} and {options.emulate_nodes or 'no'} nodes to emulate."
        )
    if options.render:
        return UNBOUNDED
    if options.launcher == "ssh" and not options.node_commands:
        return ssh_place.resources(_ssh_place(options, print))
    if options.launcher != "slurm":
        if options.render_only or _slurm_options(options) != SlurmOptions():
            raise UsageError(
                "--partition, --account, --time, --sbatch-option and --render-only need --launcher slurm, got "
                f"{options.launcher}."
            )
        nnodes = UNBOUNDED.nnodes if options.node_commands else options.emulate_nodes or 1
        return Resources(
            nnodes=nnodes,
            gpus_per_node=len(machine.gpus),
            cpus_per_node=machine.num_cpus or 1,
            is_one_host=options.launcher == "emulated",
        )
    return UNBOUNDED if options.render_only else slurm_place.resources(_slurm_options(options))


def provision(
    options: Options,
    *,
    stack: Stack,
    device: Device,
    on_message: Say,
    out: Path | None = None,
    num_gpus: int = 1,
) -> Runtime:
    """Install, build or find what is needed to run ``stack`` in the place that the user chose.

    A scheduler is asked for a node with ``num_gpus``, and ``out`` keeps what that is.

    Raises:
        WorkerEnvironmentError: something is missing that cannot be installed.
        ContainerError: there is no engine or no image.
        UsageError: options contradict each other.
    """
    if options.launcher == "container":
        return _in_containers(options, stack=stack, device=device, on_message=on_message)
    if options.launcher == "slurm" and out is not None:
        return _in_slurm(options, stack, device, on_message, out=out, num_gpus=num_gpus)
    if options.launcher == "ssh":
        return _over_ssh(options, stack, device, on_message)
    if options.launcher == "apptainer":
        return _in_apptainer(options, stack=stack, device=device, on_message=on_message)
    if options.image is not None:
        raise UsageError(
            f"--image {options.image} needs --launcher container, apptainer or slurm, got {options.launcher}."
        )
    if options.launcher == "emulated":
        gpus = emulated.visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), len(environment.capture().gpus))
        launch = functools.partial(emulated.run, gpus=gpus, cpus=environment.cores_in_order())
        return replace(_natively(options, stack=stack, device=device, on_message=on_message), launch=launch)
    return _natively(options, stack=stack, device=device, on_message=on_message)


def _natively(options: Options, *, stack: Stack, device: Device, on_message: Say) -> Runtime:
    worker = provision_worker(
        project_root=ROOT,
        stack=stack,
        worker_python=options.worker_python,
        assets=options.assets,
        on_message=on_message,
    )
    request = Request(stack=stack, device=device, worker_python=options.worker_python)
    return Runtime(
        worker=worker,
        launch=native.run,
        check=functools.partial(env_check, request),
        python_path=os.environ.get("PYTHONPATH"),
    )


def _in_slurm(options: Options, stack: Stack, device: Device, on_message: Say, *, out: Path, num_gpus: int) -> Runtime:
    if options.image is not None and pyxis.is_image(options.image):
        inner, container = _by_pyxis(options, stack=stack, device=device, on_message=on_message)
    else:
        provide = _natively if options.image is None else _in_apptainer
        inner, container = provide(options, stack=stack, device=device, on_message=on_message), None
    worker_python = inner.worker.python if stack == "isaacsim" else options.worker_python
    request = Request(stack=stack, device=device, worker_python=worker_python)
    argv, env = inner.command(request.arguments())
    of_node = container.node_container(ROOT) if container else ()
    place = SlurmPlace(
        options=_slurm_options(options),
        node_check=NodeCheck(
            argv=argv,
            env=env,
            compare=("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "suite.node_comparison"),
            container=of_node,
            is_binding=not options.ignore_env_check,
        ),
        say=on_message,
        wrap=inner.wrap,
        variable_prefix="" if inner.wrap is None or container else apptainer.VARIABLE_PREFIX,
        container=container.round_container if container else None,
        suite_python=SUITE_PYTHON if container else None,
        image_digest=inner.image_digest,
    )
    there = replace(
        inner,
        launch=functools.partial(slurm.run, place=place),
        is_submitted=slurm.is_submitted,
        write_script=functools.partial(slurm.write_script, place=place),
    )
    if options.render_only:
        return there
    argv, env = inner.command(node_facts.arguments_for(request))
    facts = slurm_place.look_at_a_node(
        argv,
        env,
        place.options,
        num_gpus=num_gpus if device == "cuda" else 0,
        project_root=ROOT,
        out=out,
        say=on_message,
        container=of_node,
    )
    return replace(there, machine=facts.environment, check=lambda: facts.report)


def _by_pyxis(
    options: Options, *, stack: Stack, device: Device, on_message: Say
) -> tuple[Runtime, pyxis_place.PyxisPlace]:
    if options.image is None:
        raise AssertionError("the caller has seen the image")
    found = pyxis_place.find(options.image, project_root=ROOT, must_run=not options.render_only)
    place = pyxis_place.provision(
        found,
        _slurm_options(options),
        stack=stack,
        assets=options.assets,
        accept_eula=options.accept_eula,
        project_root=ROOT,
        on_message=on_message,
    )
    inside = Runtime(
        worker=place.worker,
        launch=native.run,  # replaced by Slurm's
        check=functools.partial(env_check, Request(stack=stack, device=device)),  # replaced by what a node says
        python_path=None,
        image_digest=found.image_digest,
        command=lambda arguments: ((SUITE_PYTHON, *arguments), {}),
        wrap=place.wrap,
    )
    return inside, place


def _over_ssh(options: Options, stack: Stack, device: Device, on_message: Say) -> Runtime:
    if options.image is not None:
        raise UsageError(f"--image {options.image} cannot be used over ssh. Use --launcher slurm, or leave it out.")
    inner = _natively(options, stack=stack, device=device, on_message=on_message)
    place = _ssh_place(options, on_message)
    request = Request(stack=stack, device=device, worker_python=options.worker_python)
    facts = ssh_place.look_at_hosts(
        place, node_facts.arguments_for(request), differing_is_fine=options.ignore_env_check
    )
    return replace(
        inner,
        launch=functools.partial(ssh.run, place=place),
        machine=facts.environment,
        check=lambda: facts.report,
    )


def _ssh_place(options: Options, say: Say) -> ssh.SshPlace:
    return ssh.SshPlace(
        hosts=options.nodes, config=options.ssh_config, python=sys.executable, project_root=ROOT, say=say
    )


def _slurm_options(options: Options) -> SlurmOptions:
    return SlurmOptions(
        partition=options.partition, account=options.account, time=options.time, more=options.sbatch_options
    )


def _in_containers(options: Options, *, stack: Stack, device: Device, on_message: Say) -> Runtime:
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


def _in_apptainer(options: Options, *, stack: Stack, device: Device, on_message: Say) -> Runtime:
    of_run = _apptainer_options(options)
    cache, pins_sha256 = cache_root(), sha256(worker_pins(ROOT, stack)) if stack != "isaacsim" else None
    cache.mkdir(parents=True, exist_ok=True)
    key = (pins_sha256 or "isaacsim")[:12]
    python = Path(find_image(stack, ROOT).worker_python)

    def inside(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        rendered, added = apptainer.command(argv, env, of_run, writable=(cache,), with_gpus=device == "cuda")
        return subprocess.run(rendered, env={**os.environ, **added}, capture_output=True, text=True, check=False)

    asset_root, asset_sha256 = find_assets(
        options.assets, python=python, key=key, project_root=ROOT, run=inside, on_message=on_message
    )
    kernels = cache / f"kernels-{key}-image"
    kernels.mkdir(exist_ok=True)

    of_run = replace(of_run, asset_root=asset_root, cache_dir=kernels)

    def check() -> Report:
        request = Request(stack=stack, device=device).inside_image(python)
        done = inside((SUITE_PYTHON, *request.arguments()), {})
        try:
            return read_report(done.stdout)
        except ValueError as error:
            last_words = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise ContainerError(
                f"env_check did not run in {of_run.image}, exit code {done.returncode}: {error}\n{last_words}\n"
                "Take an image that `nox -s build` made: apptainer build FILE.sif docker-daemon:TAG."
            ) from error

    return Runtime(
        worker=Worker(
            python=python,
            pins_sha256=pins_sha256,
            asset_root=asset_root,
            asset_sha256=asset_sha256,
            cache_dir=kernels,
        ),
        launch=functools.partial(apptainer.run, options=of_run),
        check=check,
        python_path=None,
        image_digest=of_run.image_digest,
        command=lambda arguments: apptainer.command(
            (SUITE_PYTHON, *arguments), {}, of_run, writable=(cache,), with_gpus=device == "cuda"
        ),
        wrap=functools.partial(apptainer.render, options=of_run),
    )


def _apptainer_options(options: Options) -> apptainer.ApptainerOptions:
    if options.image is None:
        raise UsageError("--launcher apptainer needs --image, the path of a .sif file or of a sandbox folder.")
    image = Path(options.image).absolute()
    if not image.exists():
        raise UsageError(f"--image {image} does not exist. Make one: apptainer build FILE.sif docker-daemon:TAG.")
    if shutil.which(apptainer.PROGRAM) is None:
        raise ContainerError(
            f"{apptainer.PROGRAM} is not on PATH here. Load its module, or use --launcher container or native."
        )
    return apptainer.ApptainerOptions(
        image=image,
        project_root=ROOT,
        accept_eula=options.accept_eula,
        image_digest=f"sha256:{sha256(image)}" if image.is_file() else None,
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
