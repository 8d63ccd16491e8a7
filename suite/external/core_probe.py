"""How fast the core under a thread is at the moment. Both halves of labscale ask; imports the standard library only.

What an H200 waits for is one Python thread that launches kernels, so an iteration takes longer where that thread's core
is slower: another tenant on its sibling, a lower clock, another processor. Nothing else that is recorded shows it.
"""

import time
from typing import Final

LOOPS: Final = 4_000  # a tenth of a millisecond
TRIES: Final = 3


def core_probe_s() -> float:
    """Seconds for a fixed piece of the interpreter's work, the shortest of ``TRIES``: being interrupted is no speed."""
    return min(_try_s() for _ in range(TRIES))


def _try_s() -> float:
    total = 0
    start_s = time.perf_counter()
    for number in range(LOOPS):
        total ^= number
    return time.perf_counter() - start_s
