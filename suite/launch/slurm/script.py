"""Render one round as an sbatch script: one task for each node, which runs torchrun. Pure."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from suite.errors import UsageError
from suite.files.input_file import fault_of_text
from suite.launch.nodes.node import HEAD, NODE_RANK, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT
from suite.launch.processes import RUN_ID_VARIABLE
from suite.launch.watch import LOG, NODE_LOG
from suite.matrix.plan import THREAD_VARIABLES
from suite.options.command_line import any_text
from suite.options.declaration import option
from suite.options.types import gpu_type, sbatch_option, slurm_time
from suite.records.telemetry_file import SAMPLER_LOG
from suite.schema.record import Launch

SCRIPT: Final = "slurm/job.sbatch"  # below the run directory
JOB: Final = "slurm/job.json"  # id of the job; written on submission, or by a script that was submitted by hand
END: Final = "slurm/end.json"  # written by the script at its end, for when Slurm has forgotten the job
NODE_REPORT: Final = "slurm/node-{}.{}"  # of env_check, as JSON, and its stderr
DIFFERENCES: Final = "slurm/differences.txt"  # between nodes, a line each
NODES_DIFFER: Final = 97  # exit code of the script
TERMINATED: Final = 143  # of a shell that SIGTERM ends
SAMPLER_PATIENCE_S: Final = 2  # for its last sample
SLACK_MINUTES: Final = 5  # of the job's limit beyond the case's own, which labscale keeps
FIRST_PORT: Final = 20000  # below the range that the kernel gives away
PORTS: Final = 10000

# Which job runs here, unless labscale has noted this very job with its attempt; and how it ended. Without the trap for
# TERM bash notes the exit code of the last command that ended before the signal came, which is 0.
_NOTES: Final = rf"""
grep -qs '"job_id": "'"$SLURM_JOB_ID"'"' {JOB} || printf '{{"job_id": "%s", "attempt": 1}}\n' "$SLURM_JOB_ID" >{JOB}
rm -f {END}
started_unix_s=$(date +%s.%N)
note_the_end() {{
    trap '' TERM
    printf '{{"exit_code": %d, "told_to_stop": %s, ' "$1" "$told_to_stop" >{END}.part
    printf '"started_unix_s": %s, "ended_unix_s": %s, "nodes": "%s"}}\n' \
        "$started_unix_s" "$(date +%s.%N)" "$SLURM_JOB_NODELIST" >>{END}.part
    mv {END}.part {END}
}}
trap 'note_the_end $?' EXIT
told_to_stop=false
trap 'told_to_stop=true; exit {TERMINATED}' TERM
""".strip()
# torchrun starts ranks in sessions of their own, so Slurm's way of following processes may lose those of one that was
# killed. Every process of a round has inherited its name. When another node has failed, Slurm ends this by SIGTERM too.
_LEAVE_NOTHING: Final = rf"""
code=$?
trap '' TERM
exec 3>&-
for _ in {{1..{SAMPLER_PATIENCE_S}0}}; do kill -0 $sampler 2>/dev/null || break; sleep 0.1; done
kill -KILL $sampler 2>/dev/null
for environ in $(grep -lz "^LABSCALE_RUN_ID=$0$" /proc/[0-9]*/environ 2>/dev/null); do
    process=${{environ#/proc/}}
    kill -KILL "${{process%/environ}}"
done
exit $code
""".strip()


@dataclass(frozen=True, kw_only=True)
class SlurmOptions:
    """What the user asks of Slurm."""

    partition: str | None = option("with --launcher slurm: as for sbatch", type=any_text, metavar="NAME")
    account: str | None = option("with --launcher slurm: as for sbatch", type=any_text, metavar="NAME")
    time: str | None = option(
        f"with --launcher slurm: a job's time limit (default: the run's timeout + {SLACK_MINUTES} min)",
        type=slurm_time, metavar="TIME",
    )  # fmt: skip
    gpu_type: str | None = option(
        "with --launcher slurm: the kind of GPUs, as sinfo names it (default: that with the most on a node)",
        type=gpu_type, metavar="KIND",
    )  # fmt: skip
    gres: bool = option(
        "with --launcher slurm: ask with --gres, not with --gpus-per-node", default=False, action="store_true"
    )
    sbatch_option: tuple[str, ...] = option(
        "with --launcher slurm: any other option of sbatch, without its dashes; repeatable",
        default=(), type=sbatch_option, action="append", metavar="NAME[=VALUE]",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """What several nodes are asked before they train together."""

    argv: tuple[str, ...]  # prints a node's report; its exit code is part of the answer
    env: Mapping[str, str]
    compare: tuple[str, ...]  # followed by the reports; fails where nodes differ
    is_binding: bool  # whether nodes that differ are refused


def batch_script(
    launch: Launch,
    options: SlurmOptions,
    *,
    name: str,
    sampler: Sequence[str],
    variable_prefix: str = "",
    node_check: NodeCheck | None = None,
) -> str:
    """The script of one round.

    ``variable_prefix`` makes a variable reach the inside of a container. ``sampler`` runs on each node.

    Raises:
        UsageError: an option of sbatch, or the folder of the round, does not fit into one line.
    """
    several = launch.case.nnodes > 1
    blocks = (
        _directives(launch, options, name),
        _environment(launch, variable_prefix),
        _threads(launch, variable_prefix),
        (f"cd {shlex.quote(launch.run_dir)} || exit", _NOTES),
        _compare_nodes(launch, node_check) if several and node_check else (),
        _rendezvous(variable_prefix) if several else (),
        _step(launch, name, variable_prefix, sampler),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + "\n"


def requested(options: SlurmOptions, *, num_gpus: int) -> Iterator[str]:
    """Options that sbatch and srun share: where to run, and a whole node for each task."""
    yield "ntasks-per-node=1"
    yield "exclusive"  # what others do on a node would be measured too
    if num_gpus:
        count = f"{options.gpu_type}:{num_gpus}" if options.gpu_type else str(num_gpus)
        yield f"gres=gpu:{count}" if options.gres else f"gpus-per-node={count}"
    if options.partition:
        yield f"partition={options.partition}"
    if options.account:
        yield f"account={options.account}"


def without(options: SlurmOptions, nodes: Sequence[str]) -> SlurmOptions:
    """The options without these nodes, besides those that the user leaves out; not where a file names the user's."""
    asked = [value for name, _, value in (text.partition("=") for text in options.sbatch_option) if name == "exclude"]
    if not nodes or any("/" in value for value in asked):
        return options
    joined = ",".join([*asked[-1:], *nodes])
    return replace(options, sbatch_option=(*options.sbatch_option, f"exclude={joined}"))


def _directives(launch: Launch, options: SlurmOptions, name: str) -> Iterator[str]:
    case, run_dir = launch.case, launch.run_dir.replace("%", "%%")
    yield "#!/bin/bash"
    yield f"# {case.case_id}, run {launch.round}: rendered by labscale."
    directives = [
        f"job-name={name}",
        f"comment={case.case_id}/r{launch.round}",
        f"nodes={case.nnodes}",
        *requested(options, num_gpus=case.gpus_per_node if case.device == "cuda" else 0),
        f"time={options.time or math.ceil(case.timeout_s / 60) + SLACK_MINUTES}",
        f"output={run_dir}/{LOG}",
        "open-mode=append",
        "no-requeue",  # it would write into what the first attempt left; labscale submits it anew
        *options.sbatch_option,
    ]
    for directive in directives:
        if fault := fault_of_text(directive):  # after a line break it would be a command of the script
            raise UsageError(f"{directive!r} cannot be an option of sbatch, since it {fault}. Choose another value.")
        flag, equals, value = directive.partition("=")
        yield f"#SBATCH --{flag}{equals}{shlex.quote(value) if equals else ''}"


def _environment(launch: Launch, prefix: str) -> Iterator[str]:
    threads = {f"{prefix}{variable}" for variable in THREAD_VARIABLES}
    for variable, value in sorted(launch.env.items()):
        if variable not in threads:
            yield f"export {variable}={shlex.quote(value)}"


def _threads(launch: Launch, prefix: str) -> Iterator[str]:
    """Give each rank its share of the cores of the node, which may differ from the machine that renders this."""
    if launch.case.cpu_threads is None:
        yield f"threads=$((SLURM_CPUS_ON_NODE / {launch.case.processes_per_node}))"
        yield "((threads > 0)) || threads=1"
    else:
        yield f"threads={launch.case.cpu_threads}"
    yield f"export {' '.join(f'{prefix}{variable}=$threads' for variable in THREAD_VARIABLES)}"


def _compare_nodes(launch: Launch, check: NodeCheck) -> Iterator[str]:
    yield "srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=0 --input=none \\"
    yield f"    --output={NODE_REPORT.format('%n', 'json')} --error={NODE_REPORT.format('%n', 'txt')} \\"
    yield "    --open-mode=truncate \\"  # else that of the job, where a script by hand is submitted again
    settings = [f"{variable}={shlex.quote(value)}" for variable, value in sorted(check.env.items())]
    yield f"    {' '.join(['env', *settings, shlex.join(check.argv)])}"
    reports = (NODE_REPORT.format(node, "json") for node in range(launch.case.nnodes))
    refused = f" || exit {NODES_DIFFER}" if check.is_binding else ""
    yield f"{shlex.join(check.compare)} {' '.join(reports)} >{DIFFERENCES}{refused}"


def _rendezvous(prefix: str) -> Iterator[str]:
    """Reach nodes under the address that Slurm itself uses: a host may resolve its own name to 127.0.1.1."""
    yield 'mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")'
    yield "address_of() { scontrol --oneliner show node \"$1\" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p'; }"
    yield f'export {prefix}{HEAD}="$(address_of "${{nodes[0]}}")"'
    yield f'export {prefix}{PEER}="$(address_of "${{nodes[1]}}")"'
    yield f"export {prefix}{RENDEZVOUS_ID}=$SLURM_JOB_ID"
    yield f"export {prefix}{RENDEZVOUS_PORT}=$(({FIRST_PORT} + SLURM_JOB_ID % {PORTS}))"


def _step(launch: Launch, name: str, prefix: str, sampler: Sequence[str]) -> Iterator[str]:
    task = "\n".join(_task(launch, prefix, sampler))
    yield f"task={shlex.quote(task)}"
    yield "srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 --input=none \\"
    if launch.case.nnodes > 1:
        yield f"    --output={NODE_LOG.format('%n')} --open-mode=append \\"
    yield f'    bash -c "$task" {name} \\'
    yield f"    {shlex.join(launch.argv)}"


def _task(launch: Launch, prefix: str, sampler: Sequence[str]) -> Iterator[str]:
    """What runs on each node: torchrun, and then nothing of it is left. ``$0`` is the round's name."""
    several = launch.case.nnodes > 1
    if several:
        yield f"export {prefix}{NODE_RANK}=$SLURM_NODEID"
    yield "trap : TERM"  # torchrun gets the signal too, and ends its ranks
    command = shlex.join(sampler) + (" --node=$SLURM_NODEID" if several else "")
    log = "logs/node-$SLURM_NODEID/telemetry.log" if several else SAMPLER_LOG
    yield f"exec 3> >(exec {command} >{log} 2>&1)"  # it ends when its stdin closes, however this ends
    yield "sampler=$!"
    variables = dict.fromkeys((RUN_ID_VARIABLE, f"{prefix}{RUN_ID_VARIABLE}"))
    yield " ".join([*(f'{variable}="$0"' for variable in variables), '"$@"', "3>&-"])
    yield _LEAVE_NOTHING
