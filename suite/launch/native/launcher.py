"""The launchers of this machine: ``native`` as it is, ``emulated`` with parts of it that stand for nodes."""

import argparse
import functools
import os
from dataclasses import dataclass, replace
from typing import Final

from suite.env_check.report import env_check
from suite.errors import UsageError
from suite.external.machine import capture, cores_in_order
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.install.worker import provision_worker
from suite.launch.manifests import image_digest
from suite.launch.native import emulated
from suite.launch.native.run import run
from suite.launch.runtime import Asked, LauncherEntry, NoSettings, Runtime
from suite.matrix.resources import Resources
from suite.options.types import several
from suite.schema.record import Environment


@dataclass(frozen=True, kw_only=True)
class EmulatedSettings:
    emulate_nodes: int | None = None  # parts of this machine that stand for nodes


def on_this_machine(asked: Asked) -> Runtime:
    """The worker environment of this machine, or the Python that the user brought, started by torchrun here."""
    worker = provision_worker(
        project_root=ROOT,
        stack=asked.stack,
        worker_python=asked.options.setup.worker_python,
        worker_packages=asked.options.setup.worker_packages,
        assets=asked.options.setup.assets,
        on_message=asked.say,
    )
    return Runtime(
        worker=worker,
        launch=run,
        check=functools.partial(env_check, asked.request),
        python_path=os.environ.get("PYTHONPATH"),
    )


def all_of(machine: Environment) -> Resources:
    """One node, with all that the machine has."""
    return Resources(nnodes=1, gpus_per_node=len(machine.gpus), cpus_per_node=machine.num_cpus or 1)


def _native(_settings: NoSettings, asked: Asked) -> Runtime:
    return _in_this_image(on_this_machine(asked))


def _parts_of(settings: EmulatedSettings, machine: Environment) -> Resources:
    """The machine as several nodes, each of which needs a core."""
    if settings.emulate_nodes is None:
        raise UsageError(
            "--launcher emulated takes parts of this machine for nodes and needs --emulate-nodes N, got no number of "
            "nodes. Add it, or leave --launcher out."
        )
    whole = all_of(machine)
    if settings.emulate_nodes > whole.cpus_per_node:
        raise UsageError(
            f"--emulate-nodes is {settings.emulate_nodes}, and this machine has "
            f"{counted(whole.cpus_per_node, 'core')}, of which each node needs one. Give {whole.cpus_per_node} or "
            "fewer, or run on a larger machine."
        )
    return replace(whole, nnodes=settings.emulate_nodes, is_one_host=True)


def _emulated(_settings: EmulatedSettings, asked: Asked) -> Runtime:
    gpus = emulated.visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), len(capture().gpus))
    launch = functools.partial(emulated.run, gpus=gpus, cpus=cores_in_order())
    return _in_this_image(replace(on_this_machine(asked), launch=launch))


def _in_this_image(here: Runtime) -> Runtime:
    """Record the digest of the image that labscale itself runs in, if it runs in one and knows the digest."""
    digest = image_digest.digest_of(os.environ)
    if digest is None:
        return here
    launch = functools.partial(image_digest.run, inner=here.launch, digest=digest)
    return replace(here, image_digest=digest, launch=launch)


def _add_emulated(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--emulate-nodes", type=several, metavar="N",
        help="split this machine into N simulated nodes with sockets between them; results are marked emulated",
    )  # fmt: skip


NATIVE: Final = LauncherEntry(
    name="native",
    resources=lambda _, machine: all_of(machine),
    provision=_native,
    settings=NoSettings,
    picks_worker=True,
    can_profile=True,
    gives_cores=True,
)
EMULATED: Final = LauncherEntry(
    name="emulated",
    resources=_parts_of,
    provision=_emulated,
    settings=EmulatedSettings,
    add_arguments=_add_emulated,
    chosen_by="emulate_nodes",
    needs={"emulate_nodes": "its own --launcher (emulated), which takes parts of this machine for nodes"},
    picks_worker=True,
)
