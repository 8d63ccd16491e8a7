"""The launcher ``slurm``: each round is a job, natively or in an Apptainer image."""

import argparse
import functools
import sys
from dataclasses import replace
from typing import Final

from suite.files.paths import ROOT
from suite.launch.apptainer.launcher import in_apptainer
from suite.launch.apptainer.run import VARIABLE_PREFIX
from suite.launch.native.launcher import on_this_machine
from suite.launch.nodes import facts
from suite.launch.runtime import Asked, LauncherEntry, Runtime
from suite.launch.slurm import partition
from suite.launch.slurm.run import SlurmPlace, is_submitted, run, write_script
from suite.launch.slurm.script import SLACK_MINUTES, NodeCheck, SlurmOptions
from suite.options.command_line import any_text
from suite.options.types import gpu_type, sbatch_option, slurm_time


def _provision(settings: SlurmOptions, asked: Asked) -> Runtime:
    """Run each round as a job; the campaign's folder keeps the description of one node."""
    if asked.device == "cuda" and not asked.options.place.render_only:
        settings = partition.bound(settings, asked.say)
    inner = on_this_machine(asked) if asked.options.place.image is None else in_apptainer(asked)
    request = asked.request
    if asked.stack == "isaacsim":  # not installed by labscale, so that env_check would not know where it is
        request = replace(request, worker_python=inner.worker.python)
    argv, env = inner.command(request.arguments())
    place = SlurmPlace(
        options=settings,
        node_check=NodeCheck(
            argv=argv,
            env=env,
            compare=("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "suite.launch.nodes.comparison"),
            is_binding=not asked.options.place.ignore_env_check,
        ),
        say=asked.say,
        wrap=inner.wrap,
        variable_prefix="" if inner.wrap is None else VARIABLE_PREFIX,
        image_digest=inner.image_digest,
    )
    there = replace(
        inner,
        launch=functools.partial(run, place=place),
        is_submitted=is_submitted,
        write_script=functools.partial(write_script, place=place),
    )
    if asked.options.place.render_only:
        return there
    argv, env = inner.command(facts.arguments_for(request))
    found = partition.look_at_a_node(
        argv,
        env,
        settings,
        num_gpus=asked.num_gpus if asked.device == "cuda" else 0,
        out=asked.out,
        say=asked.say,
    )
    return replace(there, machine=found.environment, check=lambda: found.report)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partition", type=any_text, metavar="NAME", help="with --launcher slurm: as for sbatch")
    parser.add_argument("--account", type=any_text, metavar="NAME", help="with --launcher slurm: as for sbatch")
    parser.add_argument(
        "--time",
        type=slurm_time,
        metavar="TIME",
        help=f"with --launcher slurm: a job's time limit (default: the case's timeout + {SLACK_MINUTES} min)",
    )
    parser.add_argument(
        "--gpu-type", type=gpu_type, metavar="KIND",
        help="with --launcher slurm: the kind of GPUs, as sinfo names it (default: that with the most on a node)",
    )  # fmt: skip
    parser.add_argument(
        "--gres", action="store_true", help="with --launcher slurm: ask with --gres, not with --gpus-per-node"
    )
    parser.add_argument(
        "--sbatch-option", type=sbatch_option, action="append", default=[], metavar="NAME[=VALUE]",
        help="with --launcher slurm: any other option of sbatch, without its dashes; repeatable",
    )  # fmt: skip


SLURM: Final = LauncherEntry(
    name="slurm",
    resources=lambda settings, _: partition.resources(settings),
    provision=_provision,
    settings=SlurmOptions,
    add_arguments=_add_arguments,
    image="a .sif file that every node sees",
    writes_scripts=True,
)
