"""The nodes of a Slurm cluster: how many there are, and what one of them is like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.errors import SchedulerError
from suite.external import slurm
from suite.files.input_file import read_text
from suite.files.paths import ROOT
from suite.files.wording import last_lines
from suite.launch.nodes.facts import NodeFacts, read
from suite.launch.slurm.script import SlurmOptions, requested
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


def bound(options: SlurmOptions, say: Callable[[str], None]) -> SlurmOptions:
    """The options with the kind of GPUs of all jobs; what is left out is named."""
    groups = slurm.partition_nodes(options.partition)
    kind = kind_of(groups, options.gpu_type)
    others = dict.fromkeys(other for group in groups for other in group.gpus if other != kind)
    if kind is not None and options.gpu_type is None:
        say(f"Jobs get GPUs of the kind {kind}, not {', '.join(map(str, others))}; --gpu-type chooses another.")
    return replace(options, gpu_type=kind)


def look_at_a_node(
    argv: Sequence[str],
    env: Mapping[str, str],
    options: SlurmOptions,
    *,
    num_gpus: int,
    out: Path,
    say: Callable[[str], None],
) -> NodeFacts:
    """Run ``suite.launch.nodes.facts`` on a node with ``num_gpus``, once: the campaign's folder keeps the answer.

    Raises:
        SchedulerError: Slurm gives no node, or the program does not run there.
    """
    kept = out / FACTS
    if kept.exists():
        return _kept(kept)
    say("Waiting for a node of Slurm, to see what it is")
    of_srun = (
        "--job-name=labscale-node",
        "--nodes=1",
        *(f"--{option}" for option in (*requested(options, num_gpus=num_gpus), *options.sbatch_option)),
        f"--time={options.time or LOOK_MINUTES}",
        f"--chdir={ROOT}",
        "--cpu-bind=none",  # or it would see one core
        "--input=none",
    )
    command = ("env", *(f"{name}={value}" for name, value in env.items()), *argv)
    run = slurm.run_step((*of_srun, *command), timeout_s=QUEUE_TIMEOUT_S)
    try:
        facts = read(run.stdout)
    except ValueError as error:
        refused = "allocate" in run.stderr or "srun: error: Invalid" in run.stderr
        raise SchedulerError(
            f"labscale could not learn what a node is: srun ended with {run.exit_code}: {error}\n"
            f"{last_lines(run.stderr, 5)}\n"
            + (
                slurm.next_step(run)
                if refused
                else "The checkout, its Python and the worker must be in the same folders on every node."
            )
        ) from error
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(".part")
    part.write_text(run.stdout, encoding="utf-8")
    part.rename(kept)
    return facts


def _kept(path: Path) -> NodeFacts:
    try:
        return read(read_text(path))
    except (OSError, ValueError) as error:
        raise SchedulerError(f"{path} is not readable: {error}. Delete it, and a node is asked again.") from error
