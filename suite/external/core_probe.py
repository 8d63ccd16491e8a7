"""Measures how fast a thread's core is now. Both halves of labscale use it; it imports the standard library only.

An H200 waits for one Python thread that launches kernels, so an iteration takes longer if that thread's core is slower:
another tenant on its sibling core, a lower clock, another processor. No other recorded value shows this.
"""

import time
from typing import Final

LOOPS: Final = 4_000  # a tenth of a millisecond
TRIES: Final = 3
# An iteration without marks is followed by a probe from this length on. A probe takes 0.33 ms (median of 300 on two
# shared cores of a virtual machine, Python 3.12, 2026-11-25), so at most 0.3 % of the time between two such iterations.
LONG_ENOUGH_S: Final = 0.1


def core_probe_s() -> float:
    """Time of a fixed piece of interpreter work [s]: the shortest of ``TRIES``, to leave out interruptions."""
    return min(_try_s() for _ in range(TRIES))


def _try_s() -> float:
    total = 0
    start_s = time.perf_counter()
    for number in range(LOOPS):
        total ^= number
    return time.perf_counter() - start_s
