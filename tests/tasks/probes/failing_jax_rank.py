"""Ranks that add up a number in JAX again and again until rank 1 fails, where ``tasks.worker`` trains."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from suite.schema.record import Case
from tasks import worker
from tasks.rank.rank_log import RankLog

ITERATION_TIME_S = 0.05
FAILS_AFTER = 2  # iterations


def add_up_until_rank_1_fails(case: Case, run_dir: Path, log: RankLog, training: int) -> None:  # noqa: ARG001 - as of tasks.worker
    import torch

    from tasks.libraries import jax_processes
    from tasks.rank.context import Ranks, joined

    context: Any = SimpleNamespace(ranks=Ranks.from_torchrun(), device=torch.device("cpu"))
    with joined(case, context.ranks, context.device, log), jax_processes.jax_environment(context):
        import jax
        import skrl

        add_up = jax.pmap(lambda value: jax.lax.psum(value, "ranks"), axis_name="ranks")
        for iteration in range(case.iterations):
            (total,) = add_up(jax.numpy.ones(1))
            assert total == skrl.config.jax.world_size == 2
            log.write("iteration", iteration=iteration, samples={"iteration_time_s": ITERATION_TIME_S})
            if context.ranks.rank == 1 and iteration == FAILS_AFTER:
                raise RuntimeError("as asked")


if __name__ == "__main__":
    worker.run_rank = add_up_until_rank_1_fails
    sys.exit(worker.main(sys.argv))
