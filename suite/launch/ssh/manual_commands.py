"""The command that a person types on each of several nodes, where no launcher reaches them. Pure."""

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from suite.errors import UsageError
from suite.launch.nodes.node import HEAD, NODE_RANK, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT, torchrun_arguments
from suite.launch.slurm.script import FIRST_PORT, PORTS
from suite.matrix.plan import shell_command
from suite.schema.record import Launch

ADDRESS: Final = "ADDRESS_OF_NODE_{}"  # where the user did not say it


def node_variables(*, head: str, peer: str, rank: int, rendezvous_id: str, port: int) -> dict[str, str]:
    """What ``suite.launch.nodes.node`` has to know on one node."""
    return {
        HEAD: head,
        PEER: peer,
        NODE_RANK: str(rank),
        RENDEZVOUS_ID: rendezvous_id,
        RENDEZVOUS_PORT: str(port),
    }


def node_commands(
    launch: Launch,
    addresses: Sequence[str] = (),
    *,
    rounds: int,
    suite_python: str,
    project_root: str,
    host_label: str | None = None,
) -> Iterator[str]:
    """Lines for a shell: what each node runs, and as a comment the torchrun that this becomes.

    First it clears what an earlier attempt left, unless that is a finished round, which is refused. The head also
    writes the record of the round, by labscale's own Python, and with the last of ``rounds`` the case.

    ``addresses`` are those of the nodes, the head's first, as the other nodes reach them; without any, words stand in
    their places. Raises UsageError for fewer than the case has nodes.
    """
    nnodes = launch.case.nnodes
    hosts = tuple(addresses) or tuple(map(ADDRESS.format, range(nnodes)))
    if len(hosts) < nnodes:
        raise UsageError(f"{launch.case.case_id} needs {nnodes} nodes, --nodes names {len(hosts)}: {', '.join(hosts)}.")
    digest = hashlib.sha256(launch.run_dir.encode()).hexdigest()
    port = FIRST_PORT + int(digest, 16) % PORTS
    for rank, host in enumerate(hosts[:nnodes]):
        variables = node_variables(
            head=hosts[0], peer=hosts[1], rank=rank, rendezvous_id=f"labscale-{digest[:12]}", port=port
        )
        yield f"# node {rank} of {nnodes}, {host}:"
        yield from _clear(launch.run_dir, rank)
        if rank == 0:
            yield "started=$(date +%s)"
        yield shell_command(replace(launch, env={**launch.env, **variables}))
        if rank == 0:
            label = (f"--host-label={host_label}",) if host_label else ()
            record = shlex.join(
                (suite_python, "-m", "suite.campaign.record_round", launch.run_dir, "--rounds", str(rounds), *label)
            )
            end = '--exit-code "$?" --started-unix-s "$started"'
            yield f"PYTHONPATH={shlex.quote(project_root)} {record} {end}"
        yield "fi"
        _, _, _, logs, *arguments = launch.argv
        torchrun = torchrun_arguments(logs, arguments, variables, host)
        yield f"# starts: TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun {' '.join(torchrun)}"


def _clear(run_dir: str, rank: int) -> Iterator[str]:
    """The beginning of an ``if``, whose other branch may run: ranks append, so an attempt that broke off is removed.

    No rank of any node begins before the head is there, which therefore clears those of all. Other nodes may have
    begun to write their logs by then. The shell is a person's own, so it is not left, and may be one that refuses a
    pattern which nothing matches.
    """
    refusal = f"{run_dir} holds a finished round, which is never overwritten. Move it away and plan again."
    yield f"if [ -e {shlex.quote(f'{run_dir}/record.json')} ]; then echo {shlex.quote(refusal)} >&2; false; else"
    folders = [f"{run_dir}/logs/node-{rank}", *((f"{run_dir}/bundle",) if rank == 0 else ())]
    yield f"rm -rf {shlex.join(folders)}"
    if rank == 0:
        names = "-name 'rank-*.jsonl' -o -name 'nccl-rank-*.log'"
        yield f"find {shlex.quote(run_dir)} -maxdepth 2 \\( {names} \\) -delete"
