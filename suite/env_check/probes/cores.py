"""Times the cores one after another. ``suite.env_check.host.cores`` starts it in its own process."""

import os
import statistics
import sys
import time
from collections.abc import Sequence

from suite.env_check.probes.answer import open_answer
from suite.external.core_probe import core_probe_s

WARM_S = 0.01  # an idle core needs time to reach its full clock
PROBES = 5


def looks_s(cores: Sequence[int], passes: int) -> dict[int, list[float]]:
    """Return core -> seconds of a probe, one value for each pass over all cores: the median of ``PROBES``."""
    found: dict[int, list[float]] = {core: [] for core in cores}
    for _ in range(passes):
        for core in cores:
            os.sched_setaffinity(0, {core})
            until_s = time.perf_counter() + WARM_S
            while time.perf_counter() < until_s:
                pass
            found[core].append(statistics.median(core_probe_s() for _ in range(PROBES)))
    return found


if __name__ == "__main__":
    passes, *cores = map(int, sys.argv[1:])
    open_answer()({"looks_s": looks_s(cores, passes)})
