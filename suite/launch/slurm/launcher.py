"""Rounds on other machines: on the nodes that Slurm gives, or on hosts that ssh reaches."""

import functools
import sys
from dataclasses import replace
from pathlib import Path

from suite.env_check.request import Request
from suite.launch.containers import apptainer
from suite.launch.containers.apptainer_launcher import in_apptainer
from suite.launch.nodes import facts as node_facts
from suite.launch.runtime import Runtime, Say, on_this_machine
from suite.launch.slurm import partition as slurm_place
from suite.launch.slurm import run as slurm
from suite.launch.slurm.run import SlurmPlace
from suite.launch.slurm.script import NodeCheck, SlurmOptions
from suite.launch.ssh import hosts as ssh_place
from suite.launch.ssh import run as ssh
from suite.options.options import ROOT, Options
from suite.schema.record import Device, Stack


def in_slurm(options: Options, stack: Stack, device: Device, on_message: Say, *, out: Path, num_gpus: int) -> Runtime:
    """One job for each round, natively or in an image; ``out`` keeps what one node with ``num_gpus`` says of itself."""
    provide = on_this_machine if options.image is None else in_apptainer
    inner = provide(options, stack=stack, device=device, on_message=on_message)
    worker_python = inner.worker.python if stack == "isaacsim" else options.worker_python
    request = Request(stack=stack, device=device, worker_python=worker_python, worker_packages=options.worker_packages)
    argv, env = inner.command(request.arguments())
    place = SlurmPlace(
        options=slurm_options(options),
        node_check=NodeCheck(
            argv=argv,
            env=env,
            compare=("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "suite.launch.nodes.comparison"),
            is_binding=not options.ignore_env_check,
        ),
        say=on_message,
        wrap=inner.wrap,
        variable_prefix="" if inner.wrap is None else apptainer.VARIABLE_PREFIX,
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
    )
    return replace(there, machine=facts.environment, check=lambda: facts.report)


def over_ssh(options: Options, stack: Stack, device: Device, on_message: Say) -> Runtime:
    """The worker in the same folder on every host that ``--nodes`` names; hosts that differ are refused by name."""
    inner = on_this_machine(options, stack=stack, device=device, on_message=on_message)
    place = ssh_place_of(options, on_message)
    request = Request(
        stack=stack, device=device, worker_python=options.worker_python, worker_packages=options.worker_packages
    )
    facts = ssh_place.look_at_hosts(
        place, node_facts.arguments_for(request), differing_is_fine=options.ignore_env_check
    )
    return replace(
        inner,
        launch=functools.partial(ssh.run, place=place),
        machine=facts.environment,
        check=lambda: facts.report,
    )


def ssh_place_of(options: Options, say: Say) -> ssh.SshPlace:
    """The hosts as the user named them."""
    return ssh.SshPlace(
        hosts=options.nodes, config=options.ssh_config, python=sys.executable, project_root=ROOT, say=say
    )


def slurm_options(options: Options) -> SlurmOptions:
    """What the user asks of the scheduler."""
    return SlurmOptions(
        partition=options.partition, account=options.account, time=options.time, more=options.sbatch_options
    )
