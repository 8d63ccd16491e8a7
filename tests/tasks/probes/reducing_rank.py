"""A rank that reduces a number with the others for ever, where ``tasks.worker`` trains: all else of it is as there."""

import sys
import time
from pathlib import Path

from suite.schema.record import Case
from tasks import worker
from tasks.rank.rank_log import RankLog

ITERATION_TIME_S = 0.05


def reduce_for_ever(case: Case, run_dir: Path, log: RankLog, training: int) -> None:  # noqa: ARG001 - as of tasks.worker
    import torch

    torch.distributed.init_process_group("gloo")
    for iteration in range(case.iterations):
        torch.distributed.all_reduce(torch.ones(1))
        log.write("iteration", iteration=iteration, samples={"iteration_time_s": ITERATION_TIME_S})
        time.sleep(ITERATION_TIME_S)


if __name__ == "__main__":
    worker.run_rank = reduce_for_ever
    sys.exit(worker.main(sys.argv))
