"""A rank: its place among all ranks, its GPU, how it joins the others, and what the parts of the worker share.

Ranks join by gloo on CPUs and NCCL on GPUs, in one way for all RL libraries and without editing any. rl_games, rsl_rl
and skrl each start ``nccl`` on ``cuda:LOCAL_RANK`` themselves, at different moments. This module starts the group once,
before they do, and their own calls then do nothing. Without it, several ranks could not run on a machine without GPUs.
"""

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist

from suite.schema.record import Case, CheckResult
from tasks.rank import machine
from tasks.rank.kernel_cache import WarpCompilation
from tasks.rank.rank_log import RankLog
from tasks.rank.timing import IterationTimer

# How long a rank waits for its peers, in hang timeouts. At 1 the rank and the launcher would race to end a hung run.
PATIENCE: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The place of this process among all ranks of the case, from torchrun's variables."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int

    @property
    def is_distributed(self) -> bool:
        return self.world_size > 1

    @classmethod
    def from_torchrun(cls) -> "Ranks":
        """Read torchrun's variables. Raises KeyError if torchrun did not start this process."""
        return cls(**{place.name: int(os.environ[place.name.upper()]) for place in fields(cls)})


def gpu_of(case: Case, ranks: Ranks) -> int:
    """Return the number of the rank's GPU on its node. A training that shares one is the only rank of its own."""
    return ranks.local_rank // case.processes_per_gpu


def backend_of(case: Case) -> str:
    """Return the backend of the ranks; NCCL has no two ranks on one GPU."""
    return "nccl" if case.device == "cuda" and case.processes_per_gpu == 1 else "gloo"


@contextmanager
def joined(case: Case, ranks: Ranks, device: torch.device, log: RankLog) -> Iterator[None]:
    """Start the process group for the block; the RL libraries' own attempts to start it do nothing.

    A rank raises if it waits for its peers for ``PATIENCE`` hang timeouts; torch alone would wait half an hour. The
    launcher ends a hung run earlier and makes its ranks print their stacks. A single rank has no group, as in
    upstream's own training.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not ranks.is_distributed:
        yield
        return
    dist.init_process_group(backend_of(case), timeout=dt.timedelta(seconds=PATIENCE * case.hang_timeout_s))
    if backend_of(case) == "gloo":
        log.write("network", interfaces=machine.bound_interfaces(int(os.environ["MASTER_PORT"])))
    _compare_clocks("start", case, ranks, log)
    init, set_device = dist.init_process_group, torch.cuda.set_device

    def already_joined(*_: Any, **__: Any) -> None:
        """Ignore a library that asks for NCCL by name."""

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


def _compare_clocks(when: machine.When, case: Case, ranks: Ranks, log: RankLog) -> None:
    """Compare the nodes' clocks. The first rank of each node takes part, the others go on."""
    if case.nnodes == 1 or ranks.local_rank != 0:
        return
    store = dist.distributed_c10d._get_default_store()  # noqa: SLF001  the store that joined the ranks
    first_ranks = tuple(range(0, ranks.world_size, ranks.local_world_size))
    offset = machine.clock_offset(store, when, rank=ranks.rank, first_ranks=first_ranks)
    if offset is not None:
        log.write("clock_offset", when=when, **offset)


@dataclass(frozen=True, kw_only=True)
class RankContext:
    """One rank of one run. The RL library writes its own logs and checkpoints to ``library_dir``.

    ``training``: which of the trainings that share a GPU, from 0; each of them is rank 0 of one. ``checks``: what was
    found of the work in another process of this rank.
    """

    case: Case
    round_index: int
    training: int
    ranks: Ranks
    device: torch.device
    log: RankLog
    timer: IterationTimer
    compilation: WarpCompilation
    run_dir: Path
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def gpu(self) -> int:
        """The rank's GPU in CUDA's numbering."""
        return gpu_of(self.case, self.ranks)

    @property
    def library_dir(self) -> str:
        folder = self.run_dir / "library"
        return str(folder / f"training-{self.training}" if self.case.trainings_per_gpu > 1 else folder)

    @property
    def seed(self) -> int:
        return self.case.seed_of(rank=self.ranks.rank + self.training, round_index=self.round_index)
