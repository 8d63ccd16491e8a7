"""Joining the ranks: gloo on CPUs, NCCL on GPUs, through one path and without editing a library.

rl_games, rsl_rl and skrl each start ``nccl`` on ``cuda:LOCAL_RANK`` themselves, at different moments. Here the group is
started once, before any of them; their own attempts then find it done. On a machine without GPUs this is also what lets
several ranks run at all.
"""

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
import torch.distributed as dist

from suite.schema.record import Case
from tasks.rank import clock, network
from tasks.rank.rank_log import RankLog

# Of a rank with its peers, in hang timeouts. At 1 it would race with the launcher for what the run's outcome is.
PATIENCE: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Who this process is among all of the case, from the variables that torchrun sets."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int

    @property
    def is_distributed(self) -> bool:
        return self.world_size > 1

    @classmethod
    def from_torchrun(cls) -> "Ranks":
        """Raises: KeyError when the process was not started by torchrun."""
        return cls(
            rank=int(os.environ["RANK"]),
            local_rank=int(os.environ["LOCAL_RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]),
        )


def device_of(case: Case, ranks: Ranks) -> torch.device:
    """The device of this rank: its own GPU, or the CPU."""
    return torch.device("cuda", ranks.local_rank) if case.device == "cuda" else torch.device("cpu")


def backend_of(device: torch.device) -> str:
    return "nccl" if device.type == "cuda" else "gloo"


@contextmanager
def joined(case: Case, ranks: Ranks, device: torch.device, log: RankLog) -> Iterator[None]:
    """Start the process group for the block, and let the RL libraries believe that they did.

    A rank that waits for its peers far longer than the case's hang timeout raises; torch alone would wait half an hour.
    The launcher ends a hung run before that, and has its ranks say where they stand. A single rank has no group, as in
    upstream's own training.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not ranks.is_distributed:
        yield
        return
    dist.init_process_group(backend_of(device), timeout=dt.timedelta(seconds=PATIENCE * case.hang_timeout_s))
    if device.type == "cpu":
        log.write("network", interfaces=network.bound_interfaces(int(os.environ["MASTER_PORT"])))
    _compare_clocks("start", case, ranks, log)
    init, set_device = dist.init_process_group, torch.cuda.set_device

    def already_joined(*_: Any, **__: Any) -> None:
        """The group stands; each library asks for NCCL by name."""

    dist.init_process_group = already_joined
    if device.type == "cpu":
        torch.cuda.set_device = already_joined
    try:
        yield
        _compare_clocks("end", case, ranks, log)
        dist.barrier()
    finally:
        dist.init_process_group, torch.cuda.set_device = init, set_device
    dist.destroy_process_group()


def _compare_clocks(when: clock.When, case: Case, ranks: Ranks, log: RankLog) -> None:
    """Between nodes, by the first rank of each; the others go on."""
    if case.nnodes == 1 or ranks.local_rank != 0:
        return
    store = dist.distributed_c10d._get_default_store()  # noqa: SLF001  the one that joined the ranks
    first_ranks = tuple(range(0, ranks.world_size, ranks.local_world_size))
    offset = clock.measure(store, when, rank=ranks.rank, first_ranks=first_ranks)
    if offset is not None:
        log.write("clock_offset", when=when, **asdict(offset))
