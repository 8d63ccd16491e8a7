"""The launcher ``slurm``: each round is a job, natively or in an Apptainer image."""

import functools
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from suite.errors import SchedulerError
from suite.external import slurm
from suite.files.input_file import read_text
from suite.files.json_file import replace_json
from suite.files.paths import ROOT
from suite.files.wording import last_lines
from suite.launch.apptainer import VARIABLE_PREFIX, in_apptainer
from suite.launch.contract import Asked, Command, LauncherEntry, Runtime, Say
from suite.launch.native import on_this_machine
from suite.launch.nodes import facts
from suite.launch.nodes.facts import NodeFacts
from suite.launch.slurm.job import SlurmPlace, is_submitted, run, write_script
from suite.launch.slurm.script import NodeCheck, SlurmOptions, requested
from suite.matrix.resources import Resources
from suite.options.types import SEVERAL

QUEUE_TIMEOUT_S: Final = 24 * 3600.0  # for a node to be looked at
LOOK_MINUTES: Final = 10
FACTS: Final = "slurm/node.json"  # below the campaign's folder


def resources(options: SlurmOptions) -> Resources:
    """The nodes of the partition with the most GPUs of one kind.

    Raises:
        SchedulerError: there is no Slurm here, or no such partition; or the kind of GPUs is open.
    """
    groups = slurm.partition_nodes(options.partition)
    kind = kind_of(groups, options.gpu_type)
    counts = [group.num_gpus if kind is None else group.gpus.get(kind, 0) for group in groups]
    num_gpus = max(counts)
    best = [group for group, count in zip(groups, counts, strict=True) if count == num_gpus]
    return Resources(
        nnodes=sum(group.nnodes for group in best),
        gpus_per_node=num_gpus,
        cpus_per_node=min(group.num_cpus for group in best),
    )


def kind_of(groups: Sequence[slurm.NodeGroup], asked: str | None) -> str | None:
    """The kind of GPUs to which jobs are bound: else one could get others, or MIG slices. None: there is one kind.

    Without a wish it is that with the most on a node.

    Raises:
        SchedulerError: no node has the kind, or several kinds have as many.
    """
    most: dict[str, int] = {}
    for group in groups:
        for kind, count in group.gpus.items():
            most[kind] = max(count, most.get(kind, 0))
    listed = ", ".join(f"{kind or 'GPUs without a kind'} ({count} a node)" for kind, count in most.items())
    if asked is not None:
        if asked not in most:
            raise SchedulerError(
                f"--gpu-type is {asked!r}, and Slurm has here: {listed or 'no GPUs'}. Choose one of them."
            )
        return asked
    if len(most) < SEVERAL:
        return None
    whole = {kind: count for kind, count in most.items() if not slurm.MIG_SLICE.search(kind)} or most
    best = [kind for kind, count in whole.items() if count == max(whole.values())]
    if best[1:] or not best[0]:
        raise SchedulerError(
            f"Slurm has GPUs of several kinds here: {listed}. One run must not mix them: choose a kind with "
            "--gpu-type, or a partition that has one, with --partition."
        )
    return best[0]


def bound(options: SlurmOptions, say: Say) -> SlurmOptions:
    """The options with the kind of GPUs of all jobs; what is left out is named."""
    groups = slurm.partition_nodes(options.partition)
    kind = kind_of(groups, options.gpu_type)
    others = dict.fromkeys(other for group in groups for other in group.gpus if other != kind)
    if kind is not None and options.gpu_type is None:
        say(f"Jobs get GPUs of the kind {kind}, not {', '.join(map(str, others))}; --gpu-type chooses another.")
    return replace(options, gpu_type=kind)


def look_at_a_node(options: SlurmOptions, asked: Asked, command: Command) -> NodeFacts:
    """Run ``suite.launch.nodes.facts`` on a node, once: the campaign's folder keeps the answer.

    Raises SchedulerError if Slurm gives no node, or the program does not run there.
    """
    kept = asked.out / FACTS
    if kept.exists():
        try:
            return facts.node_facts(read_text(kept))
        except (OSError, ValueError) as error:
            raise SchedulerError(f"{kept} is not readable: {error}. Delete it, and a node is asked again.") from error
    asked.say("Waiting for a node of Slurm, to see what it is")
    argv, env = command
    num_gpus = asked.num_gpus if asked.device == "cuda" else 0
    of_srun = (
        "--job-name=labscale-node",
        "--nodes=1",
        *(f"--{option}" for option in (*requested(options, num_gpus=num_gpus), *options.sbatch_option)),
        f"--time={options.time or LOOK_MINUTES}",
        f"--chdir={ROOT}",
        "--cpu-bind=none",  # or it would see one core
        "--input=none",
    )
    variables = (f"{name}={value}" for name, value in env.items())
    run = slurm.run_step((*of_srun, "env", *variables, *argv), timeout_s=QUEUE_TIMEOUT_S)
    try:
        node = facts.node_facts(run.stdout)
    except ValueError as error:
        is_refused = "allocate" in run.stderr or "srun: error: Invalid" in run.stderr
        step = "The checkout, its Python and the worker must be in the same folders on every node."
        raise SchedulerError(
            f"labscale could not learn what a node is: srun ended with {run.exit_code}: {error}\n"
            f"{last_lines(run.stderr, 5)}\n{slurm.next_step(run) if is_refused else step}"
        ) from error
    kept.parent.mkdir(parents=True, exist_ok=True)
    replace_json(json.loads(run.stdout), kept)
    return node


def _provision(settings: SlurmOptions, asked: Asked) -> Runtime:
    """Run each round as a job; the campaign's folder keeps the description of one node."""
    if asked.device == "cuda" and not asked.options.place.render_only:
        settings = bound(settings, asked.say)
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
            compare=("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", facts.MODULE, "compare"),
            is_binding=not asked.options.place.ignore_env_check,
        ),
        say=asked.say,
        wrap=inner.wrap,
        variable_prefix="" if inner.wrap is None else VARIABLE_PREFIX,
    )
    there = replace(
        inner,
        launch=functools.partial(run, place=place),
        is_submitted=is_submitted,
        write_script=functools.partial(write_script, place=place),
    )
    if asked.options.place.render_only:
        return there
    node = look_at_a_node(settings, asked, inner.command(facts.arguments_for(request)))
    return replace(there, machine=node.environment, check=lambda: node.report)


SLURM: Final = LauncherEntry(
    name="slurm",
    resources=lambda settings, _: resources(settings),
    provision=_provision,
    settings=SlurmOptions,
    image="a .sif file that every node sees",
    elsewhere=True,
    writes_scripts=True,
)
