"""A rank that asks a process of Ray again and again, where ``tasks.worker`` trains. Neither simulates anything."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from suite.schema.record import Case
from tasks import worker
from tasks.rank.rank_log import RankLog

ITERATION_TIME_S = 0.05


def ask_ray_for_ever(case: Case, run_dir: Path, log: RankLog, training: int) -> None:
    import torch
    from torchrl.collectors import Collector

    from tasks.libraries import collect_torchrl, collector_in_ray
    from tasks.rank.context import Ranks

    class Idle(Collector):  # type: ignore[misc]  # the base is untyped
        def __init__(self, *_: Any, **__: Any) -> None:
            """Create nothing."""

        def times(self) -> dict[str, float | None]:
            return {}

    collector_in_ray.CollectorInRay = Idle  # type: ignore[misc]
    device, ranks = torch.device("cpu"), Ranks.from_torchrun()
    context: Any = SimpleNamespace(
        case=case, round_index=0, training=training, ranks=ranks, device=device, run_dir=run_dir
    )  # fmt: skip
    with collect_torchrl._collector(context) as collector:
        for iteration in range(case.iterations):
            collector.map_fn("times")
            log.write("iteration", iteration=iteration, samples={"iteration_time_s": ITERATION_TIME_S})
            time.sleep(ITERATION_TIME_S)


if __name__ == "__main__":
    worker.run_rank = ask_ray_for_ever
    sys.exit(worker.main(sys.argv))
