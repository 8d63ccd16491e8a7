"""What a completed round says beside its samples, held to its case, its workload and its machine. Pure."""

import itertools
import math
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from reports.verification.finding import Finding, differing, outside
from reports.verification.rank_samples import numbers
from suite.files.wording import counted
from suite.schema.record import RankRecord, RunRecord
from suite.schema.telemetry import TelemetrySummary

# What a fingerprint (tasks/checks/workload.py) takes from the case.
_OF_THE_CASE: Final = (
    "task", "workload", "assets", "rl_library", "num_steps_per_env", "minibatch_rule", "minibatch_size",
    "global_minibatch_size", "optimiser_steps",
)  # fmt: skip
# Where the wall clock of a node is compared with that of the host that started the round.
CLOCKS_S: Final = 60.0
WALL_SLACK_S: Final = 1.0
MEMORY_SLACK: Final = 0.01  # the size of a GPU's memory is stored to 0.1 GB


def check_facts(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """Settings, places, times, memory, clocks and transport."""
    for rank in record.ranks:
        yield from _check_settings(where, f"{at}, rank {rank.rank}", rank, record)
        yield from _check_rank_facts(where, f"{at}, rank {rank.rank}", rank, record)
    yield from _check_workload(where, at, record)
    yield from _check_places(where, at, record)
    if record.telemetry is not None:
        yield from _check_window(where, f"{at}, telemetry", record.telemetry, record)
    yield from _check_clocks(where, at, record)
    yield from _check_transport(where, at, record)


def _check_settings(where: str, at: str, rank: RankRecord, record: RunRecord) -> Iterator[Finding]:
    case, workload = record.case, record.workload or {}
    expected: dict[str, object] = {
        "seed": case.seed + rank.rank,
        "num_envs": case.num_envs,
        "device": f"cuda:{rank.local_rank}" if case.device == "cuda" else "cpu",
    }
    if case.cpu_threads is not None:
        expected["torch_num_threads"] = case.cpu_threads
    named = {"decimation": "decimation", "physics_dt_s": "env.sim.dt"}
    wanted = {**expected, **{name: workload[key] for name, key in named.items() if key in workload}}
    for name, value in wanted.items():
        if name in rank.settings:
            yield from differing(where, f"{at}: settings.{name}", rank.settings[name], value)
    # Ranks of one node see the same machine, whose GPUs may be of several kinds.
    like = next(other for other in record.ranks if other.node == rank.node)
    for name in sorted({*rank.settings, *like.settings} - {"seed", "device", "gpu_name"}):
        yield from differing(where, f"{at}: settings.{name}", rank.settings.get(name), like.settings.get(name))


def _check_workload(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """What the fingerprint of the work says of the case too."""
    for name in _OF_THE_CASE:
        if record.workload is not None and name in record.workload:
            found, wanted = record.workload[name], getattr(record.case, name)
            yield from differing(where, f"{at}: workload.{name}", found, wanted)


def _check_rank_facts(where: str, at: str, rank: RankRecord, record: RunRecord) -> Iterator[Finding]:
    """Start-up and iterations lie within the round, and what is allocated within a GPU."""
    for name, phase_s in rank.phases_s.items():
        yield from outside(where, f"{at}: phases_s.{name}", phase_s, 0, math.inf, unit="s")
    starts_s, times_s = numbers(rank, "start_s"), numbers(rank, "iteration_time_s")
    if starts_s and len(starts_s) == len(times_s):
        least_s = sum(rank.phases_s.values()) + starts_s[-1] + times_s[-1] - starts_s[0] - WALL_SLACK_S
        what = f"{at}: wall_time_s around its start-up and iterations"
        yield from outside(where, what, record.wall_time_s, least_s, math.inf, unit="s")
    most_gb = most_memory_gb(record, rank)
    if most_gb is not None:
        yield from outside(where, f"{at}: peak_memory_gb", rank.peak_memory_gb, 0, most_gb, unit="GB")
    yield from outside(where, f"{at}: kernels_compiled", rank.kernels_compiled, 0, math.inf)


def most_memory_gb(record: RunRecord, rank: RankRecord | None) -> float | None:
    """Of the largest GPU of the node that was looked at; None where none is known, and for a kind that it has not."""
    gpus = record.environment.gpus
    if rank and record.case.nnodes > 1 and rank.settings.get("gpu_name") not in {gpu.name for gpu in gpus}:
        return None
    known = [gpu.memory_gb for gpu in gpus if gpu.memory_gb is not None]
    return max(known) * (1 + MEMORY_SLACK) if known else None


def _check_places(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """torchrun gives a node as many ranks as it has processes, in a row; which node is the first is not said."""
    case = record.case
    for rank in record.ranks:
        yield from differing(
            where, f"{at}, rank {rank.rank}: local_rank", rank.local_rank, rank.rank % case.nproc_per_node
        )
    rows = [
        [rank.node for rank in record.ranks if rank.rank // case.nproc_per_node == row] for row in range(case.nnodes)
    ]
    nodes = [node for row in rows for node in row]
    if None in nodes:
        return
    one_each = all(len(set(row)) == 1 for row in rows) and sorted({*nodes}, key=str) == list(range(case.nnodes))
    if not one_each:
        expected = f"one for every {counted(case.nproc_per_node, 'rank')}, 0 to {case.nnodes - 1}"
        yield Finding(where=where, what=f"{at}: the nodes of the ranks", got=str(nodes), expected=expected)


def _check_window(where: str, at: str, seen: TelemetrySummary, record: RunRecord) -> Iterator[Finding]:
    """The steady part lies within the round, after rank 0's start-up."""
    if record.started_utc is None or record.wall_time_s is None:
        return
    started_s = datetime.fromisoformat(record.started_utc).timestamp()
    starts_up_s = min((sum(rank.phases_s.values()) for rank in record.ranks), default=0.0)
    after_s = seen.window_start_unix_s - started_s
    yield from outside(
        where,
        f"{at}: window_start_unix_s after the round's start",
        after_s,
        starts_up_s - CLOCKS_S,
        record.wall_time_s - seen.window_s + CLOCKS_S,
        unit="s",
    )


def _check_clocks(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """The offset in the middle of a round is at most half its drift from that at an end."""
    clocks = record.clocks or ()
    first = next((rank.node for rank in record.ranks if rank.rank == 0), None)
    others = {rank.node for rank in record.ranks if rank.node is not None} - {first}
    nodes = [clock.node for clock in clocks]
    if first is not None and (len({*nodes}) < len(nodes) or not others >= {*nodes}):
        expected = f"each once, of {sorted(others)}"
        yield Finding(where=where, what=f"{at}: the nodes of clocks", got=str(nodes), expected=expected)
    for clock in clocks:
        here = f"{at}: the clock of node {clock.node}"
        half_s = abs(clock.drift_s or 0.0) / 2
        yield from outside(where, f"{here}: bound_s", clock.bound_s, half_s, math.inf, unit="s")
        if record.transport is not None and record.transport.emulated:  # it is the same clock
            bound_s = clock.bound_s
            yield from outside(where, f"{here}: offset_s", clock.offset_s, -bound_s, bound_s, unit="s")


def _check_transport(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    transport = record.transport
    if transport is None:
        return
    yield from outside(where, f"{at}: transport.unread_lines", transport.unread_lines, 0, math.inf)
    most = record.case.world_size * (record.case.world_size - 1)
    for index, (route, name) in enumerate(itertools.product(transport.routes, ("pairs", "channels"))):
        least, highest = (1, most) if name == "pairs" else (route.pairs, math.inf)
        what = f"{at}: transport.routes[{index // 2}].{name}"
        yield from outside(where, what, getattr(route, name), least, highest)
