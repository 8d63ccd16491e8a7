"""The launcher ``emulated``: this machine stands for several nodes, each of which is a part of its GPUs and cores."""

import argparse
import functools
import os
from dataclasses import dataclass, replace
from typing import Final

from suite.errors import UsageError
from suite.external.machine import capture, cores_in_order
from suite.files.wording import counted
from suite.launch.emulated.run import run, visible_gpus
from suite.launch.native.launcher import all_of, in_this_image, on_this_machine
from suite.launch.runtime import Asked, LauncherEntry, Runtime
from suite.matrix.resources import Resources
from suite.options.types import several
from suite.schema.record import Environment


@dataclass(frozen=True, kw_only=True)
class EmulatedSettings:
    emulate_nodes: int | None = None  # parts of this machine that stand for nodes


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


def _provision(_settings: EmulatedSettings, asked: Asked) -> Runtime:
    gpus = visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), len(capture().gpus))
    launch = functools.partial(run, gpus=gpus, cpus=cores_in_order())
    return in_this_image(replace(on_this_machine(asked), launch=launch, launch_in_turns=None))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--emulate-nodes", type=several, metavar="N",
        help="split this machine into N simulated nodes with sockets between them; results are marked emulated",
    )  # fmt: skip


EMULATED: Final = LauncherEntry(
    name="emulated",
    resources=_parts_of,
    provision=_provision,
    settings=EmulatedSettings,
    add_arguments=_add_arguments,
    chosen_by="emulate_nodes",
    needs={"emulate_nodes": "its own --launcher (emulated), which takes parts of this machine for nodes"},
    picks_worker=True,
    has_own_workers=True,
)
