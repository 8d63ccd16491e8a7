"""Records the conditions of an iteration: what its core did, and how fast core, memory and GPU answer after it.

Runs of the same work differ by more than the core's speed explains; these columns are there to find the rest. All of it
happens outside the timed part of an iteration. Beside the core probe it takes 171 µs on average in an iteration of 193
ms, 0.09 %: Cartpole, rsl_rl, 8,192 environments on an H200, 32 virtual cores of a shared host, labscale of 30 Nov 2026.
With all probes in each iteration it was 0.13 % there, and 0.22 % in Ant; so memory and launch are probed in marked
iterations only.
Imports torch only to launch a kernel.
"""

import ctypes
import os
import random
import resource
import time
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

from suite.external.core_probe import TRIES, core_probe_s

LOADS: Final = 64  # of a try; each takes some 250 ns after an iteration, of which the interpreter needs 40
LINE: Final = 8  # numbers in a cache line of 64 bytes, so that no two loads share one
MEMORY_LINES: Final = 2**17  # 8 MiB: more than the L2 cache of a core


# Column of a counter -> its value. ``core`` is the core that the thread is on. What the kernel does not count is None.
type Counters = dict[str, float | None]


class Thread:
    """Reads the kernel's counters of the thread that made it, and of its core."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._schedstat = _opened(proc / "thread-self" / "schedstat")
        self._stat = _opened(proc / "stat")
        self._stat_bytes = 128 * (1 + (os.cpu_count() or 1))  # the lines of the cores come first
        self._core: Callable[[], int] = ctypes.CDLL(None).sched_getcpu

    def counters(self, *, steal: bool) -> Counters:
        """Read the counters, those of the core only with ``steal``: the kernel writes a line for each core."""
        wait_time_s = self._wait_time_s()
        is_counted = wait_time_s is not None  # gVisor, for one, has no such file, and zeros for switches and steal
        core = self._core() if steal and is_counted else None
        return {
            "core_cpu_time_s": time.thread_time(),
            "core_wait_time_s": wait_time_s,
            "core_switches": resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw if is_counted else None,
            "core_steal_time_s": self._steal_time_s(core),
            "core": core,
        }

    def _wait_time_s(self) -> float | None:
        if self._schedstat is None:
            return None
        ran_ns, waited_ns, _ = os.pread(self._schedstat, 128, 0).split()
        return int(waited_ns) / 1e9 if int(ran_ns) else None  # a kernel that does not count writes zeros

    def _steal_time_s(self, core: int | None) -> float | None:
        if core is None or self._stat is None:
            return None
        _, line, rest = os.pread(self._stat, self._stat_bytes, 0).partition(b"\ncpu%d " % core)
        # user, nice, system, idle, iowait, irq, softirq, steal
        return int(rest.split(maxsplit=8)[7]) / os.sysconf("SC_CLK_TCK") if line else None


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def between(begun: Counters, ended: Counters) -> dict[str, float | None]:
    """Return the columns of an iteration from the counters at its begin and its end."""
    if begun["core"] != ended["core"]:
        ended = {**ended, "core_steal_time_s": None}
    pairs = {name: (begun[name], ended[name]) for name in begun if name != "core"}
    return {
        name: None if before is None or after is None else float(after - before)
        for name, (before, after) in pairs.items()
    }


class MemoryProbe:
    """Numbers in memory, each of which says where the next one is: one cycle through all lines, in random order."""

    def __init__(self, lines: int = MEMORY_LINES) -> None:
        order = list(range(lines))
        random.Random(0).shuffle(order)  # noqa: S311  (so that no core can guess the next line)
        self._next = array("Q", bytes(8 * LINE * lines))
        for line, following in pairwise([*order, order[0]]):
            self._next[LINE * line] = LINE * following
        self._at = 0

    def load_s(self) -> float:
        """Time of a load that needs the load before it [s]: the shortest of ``TRIES``, each at new places."""
        return min(self._try_s() for _ in range(TRIES)) / LOADS

    def _try_s(self) -> float:
        following, at = self._next, self._at
        start_s = time.perf_counter()
        for _ in range(LOADS):
            at = following[at]
        taken_s = time.perf_counter() - start_s
        self._at = at
        return taken_s


def launch_probe_s() -> float:
    """Time to launch an empty kernel on an idle GPU and to wait for it [s]: the shortest of ``TRIES``."""
    import torch

    stream = torch.cuda.current_stream()

    def try_s() -> float:
        start_s = time.perf_counter()
        torch.cuda._sleep(0)  # noqa: SLF001  (a kernel that counts no cycles; torch has no public one that does nothing)
        stream.synchronize()
        return time.perf_counter() - start_s

    return min(try_s() for _ in range(TRIES))


class Conditions:
    """The columns of one rank. Made in the thread that launches kernels."""

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._thread = Thread()
        self._memory = MemoryProbe()
        self._begun = self._thread.counters(steal=False)

    def begin(self, *, steal: bool) -> None:
        """Read the counters before an iteration; ``steal``: those of the core too."""
        self._begun = self._thread.counters(steal=steal)

    def end(self, *, marked: bool, long_enough: bool) -> dict[str, float | None]:
        """Return the columns; the device must be synchronised. Memory and launch are probed in marked iterations only.

        ``long_enough``: the core is probed in every iteration.
        """
        return {
            **between(self._begun, self._thread.counters(steal=marked)),
            "core_probe_time_s": core_probe_s() if marked or long_enough else None,
            "memory_probe_time_s": self._memory.load_s() if marked else None,
            "launch_probe_time_s": launch_probe_s() if marked and self._on_gpu else None,
        }
