"""Two iterations of a timer whose NVTX calls are written down instead of made; print them."""

import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    import torch

    said: list[str] = []
    torch.cuda.nvtx.range_push = lambda name: said.append(f"+{name}")
    torch.cuda.nvtx.range_pop = lambda: said.append("-")

    from tasks.rank.rank_log import RankLog
    from tasks.rank.timing import IterationTimer

    with tempfile.TemporaryDirectory() as folder:
        timer = IterationTimer(RankLog(Path(folder), 0), torch.device("cpu"))
        step, reduce = timer.environment_step.wrap(lambda: 1), timer.all_reduce.wrap(lambda tensor: tensor)
        for _ in range(2):
            timer.begin()
            step()
            step()
            timer.end_collection()
            reduce(torch.zeros(1))
            timer.end()
            timer.write({})
    json.dump({"said": said}, sys.stdout)


if __name__ == "__main__":
    main()
