"""Print a workload's fingerprint as its rank 0 would write it: ``python -m tests.probes.workload RUN_DIR``.

RUN_DIR holds the ``case.json``. Nothing is trained.
"""

import json
import sys
from pathlib import Path


def main(run_dir: Path) -> None:
    import torch

    from tasks import simulation, workload
    from tasks.context import RankContext
    from tasks.process_group import Ranks
    from tasks.rank_log import RankLog
    from tasks.timing import IterationTimer
    from tasks.worker import adapter_for, read_case

    case = read_case(run_dir / "case.json")
    adapter = adapter_for(case)
    log = RankLog(run_dir, 0)
    device = torch.device("cpu")
    context = RankContext(
        case=case,
        ranks=Ranks(rank=0, local_rank=0, world_size=1, local_world_size=1),
        device=device,
        log=log,
        timer=IterationTimer(log, device),
        run_dir=run_dir,
    )
    with simulation.simulation(context, agent_entry_point=adapter.AGENT_ENTRY_POINT) as running:
        print(json.dumps(workload.describe(context, running, adapter.configure(context, running))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
