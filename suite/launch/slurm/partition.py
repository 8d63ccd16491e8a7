"""The nodes of a Slurm cluster: how many there are, and what one of them is like."""

from collections.abc import Callable, Mapping, Sequence
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

QUEUE_TIMEOUT_S: Final = 24 * 3600.0  # for a node to be looked at
LOOK_MINUTES: Final = 10
FACTS: Final = "slurm/node.json"  # below the campaign's folder


def resources(options: SlurmOptions) -> Resources:
    """The nodes of the partition with the most GPUs.

    Raises:
        SchedulerError: there is no Slurm here, or no such partition.
    """
    groups = slurm.partition_nodes(options.partition)
    num_gpus = max(group.num_gpus for group in groups)
    best = [group for group in groups if group.num_gpus == num_gpus]
    return Resources(
        nnodes=sum(group.nnodes for group in best),
        gpus_per_node=num_gpus,
        cpus_per_node=min(group.num_cpus for group in best),
    )


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
        raise SchedulerError(
            f"labscale could not learn what a node is: srun ended with {run.exit_code}: {error}\n"
            f"{last_lines(run.stderr, 5)}\n"
            "The checkout, its Python and the worker must be in the same folders on every node."
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
