"""The rank that a part of the worker runs in: its case, device, log and timer."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from suite.schema.record import Case, CheckResult
from tasks.rank.kernel_cache import WarpCompilation
from tasks.rank.process_group import Ranks
from tasks.rank.rank_log import RankLog
from tasks.rank.timing import IterationTimer


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
    def library_dir(self) -> str:
        folder = self.run_dir / "library"
        return str(folder / f"training-{self.training}" if self.case.trainings_per_gpu > 1 else folder)

    @property
    def seed(self) -> int:
        return self.case.seed_of(rank=self.ranks.rank + self.training, round_index=self.round_index)
