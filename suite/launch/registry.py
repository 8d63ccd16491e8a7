"""Where the rounds of a campaign run: on this machine, in containers, in an Apptainer image, or on other machines.

Each place gives the same three things: a worker, a launcher, and what env_check says there.
"""

import functools
import os
from dataclasses import replace
from pathlib import Path

from suite.errors import UsageError
from suite.external import machine as environment
from suite.files.wording import counted
from suite.launch.containers.apptainer_launcher import in_apptainer
from suite.launch.containers.launcher import in_containers
from suite.launch.manifests import image_digest as own_image
from suite.launch.native import emulated
from suite.launch.runtime import Runtime, Say, on_this_machine
from suite.launch.slurm import partition as slurm_place
from suite.launch.slurm.launcher import in_slurm, over_ssh, slurm_options, ssh_place_of
from suite.launch.ssh import hosts as ssh_place
from suite.matrix.resources import UNBOUNDED, Resources
from suite.options.options import Options
from suite.options.rules import check_options
from suite.schema.record import Device, Environment, Stack


def resources(options: Options, machine: Environment) -> Resources:
    """How much the place that the user chose can run.

    Raises:
        UsageError: options contradict each other, one would do nothing, or asks for more than this machine has.
        SchedulerError: Slurm does not answer, or has no such partition.
    """
    check_options(options)
    if options.render:
        return UNBOUNDED
    if options.launcher == "ssh":
        return ssh_place.resources(ssh_place_of(options, print))
    if options.launcher != "slurm":
        _require_cores(options.emulate_nodes, machine)
        return Resources(
            nnodes=options.emulate_nodes or 1,
            gpus_per_node=len(machine.gpus),
            cpus_per_node=machine.num_cpus or 1,
            is_one_host=options.launcher == "emulated",
        )
    return UNBOUNDED if options.render_only else slurm_place.resources(slurm_options(options))


def _require_cores(emulated_nodes: int | None, machine: Environment) -> None:
    """Each part of this machine that stands for a node needs a core."""
    cores = machine.num_cpus or 1
    if emulated_nodes is not None and emulated_nodes > cores:
        raise UsageError(
            f"--emulate-nodes is {emulated_nodes}, and this machine has {counted(cores, 'core')}, of which each node"
            f" needs one. Give {cores} or fewer, or run on a larger machine."
        )


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
        UsageError: an image is missing, there is a Python beside it, or a pod was told a digest that is none.
    """
    if options.launcher == "container":
        return in_containers(options, stack=stack, device=device, on_message=on_message)
    if options.launcher == "slurm" and out is not None:
        return in_slurm(options, stack, device, on_message, out=out, num_gpus=num_gpus)
    if options.launcher == "ssh":
        return over_ssh(options, stack, device, on_message)
    if options.launcher == "apptainer":
        return in_apptainer(options, stack=stack, device=device, on_message=on_message)
    if options.launcher == "emulated":
        gpus = emulated.visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), len(environment.capture().gpus))
        launch = functools.partial(emulated.run, gpus=gpus, cpus=environment.cores_in_order())
        return _in_this_image(
            replace(on_this_machine(options, stack=stack, device=device, on_message=on_message), launch=launch)
        )
    return _in_this_image(on_this_machine(options, stack=stack, device=device, on_message=on_message))


def _in_this_image(here: Runtime) -> Runtime:
    """Rounds that start here run in the image that labscale runs in, if it runs in one and was told which."""
    digest = own_image.digest_of(os.environ)
    if digest is None:
        return here
    return replace(here, image_digest=digest, launch=functools.partial(own_image.run, inner=here.launch, digest=digest))
