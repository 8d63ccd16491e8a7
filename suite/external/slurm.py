"""Runs Slurm's commands: submits a job, reads its state, cancels it. Needs no accounting.

No other file knows these commands, except ``suite.env_check.nodes``, which works inside an allocation.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.errors import SchedulerError
from suite.external.program import ProgramRun, run_program

TIMEOUT_S: Final = 60.0  # of one command; a busy controller may be slow
RESERVATION_GONE: Final = "RESV_DEL_HOLD"  # the job is held, because its reservation has ended
WAITING: Final = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", RESERVATION_GONE}
)
STANDS_STILL: Final = frozenset({"SUSPENDED", "STOPPED"})  # another job has its nodes for a while
GOING_ON: Final = WAITING | STANDS_STILL | {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "RESIZING"}
MIG_SLICE: Final = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)  # in the name of a kind of GPUs: a part of one
# What Slurm says when it refuses, the first that fits -> the option that is to change.
_REFUSALS: Final[Mapping[str, str]] = {
    r"\bgres\b|generic resource|gpus?-per-|requested node configuration": (
        "GPUs are asked for in a way that this cluster does not take. `sinfo --format='%P %D %G'` lists what it has: "
        "name their kind with --gpu-type, add --gres where the cluster wants that option, or choose another "
        "--partition."
    ),
    r"\bqos\b": (
        "Choose a QOS with --sbatch-option qos=NAME, or ask for less (--time, fewer nodes). `sacctmgr show assoc "
        "user=$USER format=account,partition,qos` lists those that you may use."
    ),
    r"\baccount\b|association": (
        "Choose an account with --account. `sacctmgr show assoc user=$USER format=account,partition` lists yours."
    ),
    r"\bpartition\b": "Choose a partition with --partition. `sinfo --summarize` lists them.",
    r"time limit|time specification": "Choose a shorter time with --time. `sinfo --format='%P %l'` lists the longest.",
    r"node count|more nodes|too many nodes|node specification|node name": (
        "The partition does not give a job that many nodes, or those. Choose another --partition, leave out "
        "--sbatch-option nodelist, or select smaller configurations with --gpus. `sinfo --format='%P %D %s'` says what "
        "it gives."
    ),
    r"feature|constraint": "Choose another --sbatch-option constraint=NAME. `sinfo --format='%P %f'` lists them.",
    r"memory": "Choose the memory of a node with --sbatch-option mem=SIZE; mem=0 asks for all of it.",
    r"\bcpus?\b|processors?|cores": "Choose another --partition: no node of it has that many cores.",
    r"reservation": "Choose another --sbatch-option reservation=NAME. `scontrol show reservation` lists them.",
    r"unrecognized option|invalid option|unknown option|ambiguous": (
        "sbatch here does not know an option: correct --sbatch-option. `sbatch --help` lists its options."
    ),
    r"licen[cs]e": "Choose another --sbatch-option licenses=NAME. `scontrol show licenses` lists them.",
}
# Then nothing was refused.
_NO_ANSWER: Final = re.compile(
    "unable to contact|socket timed out|connection|communication|temporarily|try again|not responding", re.IGNORECASE
)
_FORGOTTEN: Final = "Invalid job id specified"
# Not POWERING_DOWN and POWERED_DOWN: idle nodes may have these states after the job.
_DEAD_NODE: Final = re.compile(r"\*|\bDOWN\b|FAIL|NOT_RESPONDING|UNKNOWN")


@dataclass(frozen=True, kw_only=True)
class Job:
    job_id: str
    state: str  # Slurm's own name
    reason: str | None  # why it waits, or ended
    nodes: str | None  # compressed, e.g. gpu[01-04]; None before it has any
    exit_code: int | None  # of its script, negative for a signal; None while it runs

    @property
    def is_over(self) -> bool:
        """Whether none of its processes is left. A job that is completing may have some."""
        return self.state not in GOING_ON

    @property
    def condition(self) -> str:
        """Id, state and reason, without the names of its nodes."""
        why = f" ({self.reason})" if self.reason else ""
        return f"Slurm job {self.job_id}: {self.state}{why}"

    def __str__(self) -> str:
        return f"{self.condition} on {self.nodes}" if self.nodes else self.condition


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Nodes of a partition that are alike."""

    nnodes: int
    num_cpus: int
    gpus: Mapping[str, int]  # of each kind; "": Slurm names none

    @property
    def num_gpus(self) -> int:
        """Whole ones."""
        return sum(count for kind, count in self.gpus.items() if not MIG_SLICE.search(kind))


def submit(script: Path) -> str:
    """Submit a script and return the job's id.

    Raises:
        SchedulerError: Slurm refuses it; the message quotes Slurm.
    """
    run = _ask("sbatch", "--parsable", str(script))
    return run.stdout.strip().partition(";")[0]


def could_start(script: Path) -> bool:
    """Whether the nodes that are in service now suffice for a script, busy or not."""
    return _run("sbatch", "--test-only", str(script)).exit_code == 0


def find(name: str) -> str | None:
    """Return the id of the job with this name that has not ended, or None."""
    ids = _ask("squeue", "--noheader", "--format=%i", f"--name={name}").stdout.split()
    return ids[0] if ids else None


def job(job_id: str) -> Job | None:
    """Return Slurm's state of a job; None if Slurm has forgotten it, some minutes after its end.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    run = _run("scontrol", "--oneliner", "show", "job", job_id)
    if run.exit_code != 0 and _FORGOTTEN in run.stderr:
        return None
    first_line = _checked(run, "scontrol").stdout.partition("\n")[0]
    words = re.findall(r"(?:^|\s)(JobState|Reason|NodeList|ExitCode)=(\S+)", first_line)
    fields = {name: text for name, text in words if text not in ("None", "(null)", "N/A")}
    state = fields["JobState"]
    code, _, signal_number = fields.get("ExitCode", "0:0").partition(":")
    return Job(
        job_id=job_id,
        state=state,
        reason=fields.get("Reason"),
        nodes=fields.get("NodeList"),
        exit_code=None if state in GOING_ON else -int(signal_number or 0) or int(code),
    )


def cancel(job_id: str) -> None:
    """Cancel a job; it ends some seconds later."""
    _ask("scancel", job_id)


def node_names(nodes: str) -> tuple[str, ...]:
    """Expand a compressed list, such as gpu[01-04], in the order of ``SLURM_NODEID``."""
    return tuple(_ask("scontrol", "show", "hostnames", nodes).stdout.split())


def dead_nodes(names: Sequence[str]) -> tuple[str, ...]:
    """Return those that do not answer or are down. One that Slurm does not find is not: a cloud's may be gone.

    Raises:
        SchedulerError: Slurm does not answer, or refuses to.
    """
    if not names:  # it would list all
        return ()
    run = _run("scontrol", "--oneliner", "show", "node", ",".join(names))
    if not re.search(r"^Node \S+ not found$", run.stdout, re.MULTILINE):  # it ends with 1, and lists the others
        _checked(run, "scontrol")
    states = re.findall(r"(?:^|\s)NodeName=(\S+) .*?\sState=(\S+)", run.stdout)
    return tuple(name for name, state in states if _DEAD_NODE.search(state))


def partition_nodes(partition: str | None) -> tuple[NodeGroup, ...]:
    """Return the groups of nodes in a partition; None means all partitions.

    Raises:
        SchedulerError: there is no Slurm here, or no such partition.
    """
    only = (f"--partition={partition}",) if partition else ()
    lines = _ask("sinfo", "--noheader", "--format=%D|%c|%G", *only).stdout.split()  # 2|64+|gpu:h200:8(S:0-1)
    if not lines:
        raise SchedulerError(f"Slurm has no nodes in partition {partition}. sinfo lists what there is.")
    groups = []
    for line in lines:
        nnodes, cpus, resources = line.split("|", 2)
        gpus = Counter[str]()
        for kind, count in re.findall(r"(?:^|,)gpu:(?:([^:,(]+):)?(\d+)", resources):
            gpus[kind] += int(count)
        groups.append(NodeGroup(nnodes=int(nnodes), num_cpus=int(cpus.rstrip("+")), gpus=gpus))
    return tuple(groups)


def run_step(arguments: Sequence[str], *, timeout_s: float) -> ProgramRun:
    """Run srun with these arguments, for at most ``timeout_s``."""
    return run_program(("srun", *arguments), environ=_environment(), timeout_s=timeout_s)


def _ask(*argv: str) -> ProgramRun:
    return _checked(_run(*argv), argv[0])


def _run(*argv: str) -> ProgramRun:
    return run_program(argv, environ=_environment(), timeout_s=TIMEOUT_S)


def _environment() -> dict[str, str]:
    """Return our environment without an allocation's variables, so that jobs are separate from our own allocation."""
    if "SLURM_JOB_ID" not in os.environ:
        return dict(os.environ)
    return {name: value for name, value in os.environ.items() if name == "SLURM_CONF" or not name.startswith("SLURM_")}


def _checked(run: ProgramRun, program: str) -> ProgramRun:
    if run.end == "not_started":
        raise SchedulerError(
            f"{program} is not on PATH here ({run.stderr}). Run this where Slurm's commands are, often a login node."
        )
    if run.end != "ended" or run.exit_code != 0:
        words = " ".join((run.stderr or run.stdout).split()) or f"no answer in {run.wall_s:.0f} s"
        raise SchedulerError(f"{program}: {words.rstrip('.')}. {next_step(run)}")
    return run


def next_step(run: ProgramRun) -> str:
    """What to change after a refusal; after no answer, the same again may work."""
    words = run.stderr or run.stdout
    if run.end != "ended" or not words.strip() or _NO_ANSWER.search(words):
        return "What has finished is kept; run the same command again to go on."
    steps = (step for sign, step in _REFUSALS.items() if re.search(sign, words, re.IGNORECASE))
    return next(
        steps,
        "Change what it names: --partition, --account, --time, --gpu-type and --sbatch-option go to sbatch. What has "
        "finished is kept.",
    )
