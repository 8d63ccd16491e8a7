"""Times iterations inside a rank, with one device synchronisation per iteration. Nothing is read from logs.

Timing a section of an iteration (collection, learning, environment steps and their parts, all-reduce) must not
synchronise the device: that would change what is measured. On CUDA a section is timed by pairs of events on torch's
stream, which are read after the iteration's one synchronisation. On a CPU, where calls are synchronous, it is timed by
the wall clock. Torch's default stream waits for Warp's, so the events cover Newton's kernels too.
"""

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from suite.external.core_probe import LONG_ENOUGH_S
from tasks.rank.conditions import Conditions
from tasks.rank.profiling import Ranges
from tasks.rank.rank_log import RankLog
from tasks.rank.turns import Turns

MARKED_EVERY: Final = 4  # so the window of a round of five iterations or more has a marked one
FIRST_MARKED: Final = 2  # the first iteration never counts, and short tests have three


class CpuMarks:
    """Points in time on a device; this one has no queue to wait for."""

    def now(self) -> Any:
        return time.perf_counter()

    def elapsed_s(self, start: Any, end: Any) -> float:
        return float(end - start)

    def synchronize(self) -> None:
        """Wait until the device has done what it was asked for."""

    def recycle(self) -> None:
        """Reuse the marks taken so far: all have been read."""


class CudaMarks(CpuMarks):
    """CUDA events, which are reused: making one takes longer than recording it, which short iterations would show."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._free: list[torch.cuda.Event] = []
        self._taken: list[torch.cuda.Event] = []

    def now(self) -> Any:
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)
        event.record()
        self._taken.append(event)
        return event

    def elapsed_s(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) / 1e3

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)

    def recycle(self) -> None:
        self._free += self._taken
        self._taken = []


class Section:
    """Measures the total time inside a call that happens many times in an iteration."""

    def __init__(self, marks: CpuMarks, name: str, ranges: Ranges) -> None:
        self._marks, self._ranges = marks, ranges
        self.name = name
        self._pairs: list[tuple[Any, Any]] = []
        self._inside = False
        self.enabled = True
        self.calls_s: tuple[float, ...] = ()  # each of the calls that the last drain added up

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``call`` with its time measured; an asynchronous collective is timed until its call returns.

        One section may wrap several calls; a call inside another one of them is not counted again.
        """
        call = self._ranges.around(self.name, call)

        @functools.wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.enabled:
                return call(*args, **kwargs)
            self._inside = True
            start = self._marks.now()
            try:
                return call(*args, **kwargs)
            finally:
                self._pairs.append((start, self._marks.now()))
                self._inside = False

        return timed

    def discard(self) -> None:
        """Forget the calls so far, which happened between iterations, such as the reset before the first."""
        self._pairs = []

    def drain(self) -> float | None:
        """Return the total since the last drain [s]; None, not 0, without a call. The device must be synchronised."""
        pairs, self._pairs = self._pairs, []
        self.calls_s = tuple(self._marks.elapsed_s(start, end) for start, end in pairs)
        return sum(self.calls_s) if pairs else None


class Collective(Section):
    """A section whose calls reduce a tensor over all ranks; counts bytes too."""

    def __init__(self, marks: CpuMarks, name: str, ranges: Ranges) -> None:
        super().__init__(marks, name, ranges)
        self._num_bytes = 0

    def wrap(
        self, call: Callable[..., Any], *, num_bytes: Callable[[Any], int] = lambda tensor: int(tensor.nbytes)
    ) -> Callable[..., Any]:
        """Return ``call``, whose first argument is ``tensor`` as in torch, with time and bytes counted."""
        timed = super().wrap(call)

        @functools.wraps(call)
        def counted(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self.enabled:
                self._num_bytes += num_bytes(tensor)
            return timed(tensor, *args, **kwargs)

        return counted

    def discard(self) -> None:
        super().discard()
        self._num_bytes = 0

    def drain_bytes(self) -> int:
        """Return the bytes of all calls since the last drain."""
        num_bytes, self._num_bytes = self._num_bytes, 0
        return num_bytes


class IterationTimer:
    """Times the iterations of one rank and writes each as it ends.

    An adapter calls ``begin``, ``end_collection`` and ``end`` at its library's own boundaries, so that an iteration is
    what the library calls one: rollout plus update, without logging and checkpoints.

    Sections are marked in one of every ``MARKED_EVERY`` iterations only: events around every step and every all-reduce
    lengthened an iteration by 1 to 3 % on an H200. The time of an iteration therefore comes from the others
    (``suite.statistics.reduce``).
    """

    def __init__(self, log: RankLog, device: torch.device, turns: Turns | None = None) -> None:
        self._log = log
        self._turns = turns or Turns()
        self._turn: int | None = None
        self._marked = False
        self._marks = CudaMarks(device) if device.type == "cuda" else CpuMarks()
        self._conditions = Conditions(on_gpu=device.type == "cuda")
        self._ranges = ranges = Ranges()
        self.environment_step = Section(self._marks, "environment_step", ranges)
        self.simulate = Section(self._marks, "simulate", ranges)
        self.render = Section(self._marks, "render", ranges)
        self.inference = Section(self._marks, "inference", ranges)
        self.all_reduce = Collective(self._marks, "all_reduce", ranges)
        self._sections = (self.environment_step, self.simulate, self.render, self.inference, self.all_reduce)
        self.iterations = 0
        self.after_iteration: Callable[[], None] | None = None  # not timed; must not wait for the device
        self.samples: list[dict[str, float | None]] = []
        self.clock_zero_s = time.perf_counter()
        log.write("clock", zero_monotonic_s=self.clock_zero_s)  # all processes of a host share this clock
        self._start_s = 0.0
        self._start: Any = None
        self._collected: Any = None

    def begin(self) -> None:
        """Wait for a turn if the round is measured in turns, then start the clock."""
        if self._turns.must_wait(self.iterations):
            self._marks.synchronize()  # what the library did after the last iteration does not run into others' turns
        self._turn = self._turns.begin(self.iterations)
        self._marked = self.iterations % MARKED_EVERY == FIRST_MARKED
        for section in self._sections:
            section.discard()
            section.enabled = self._marked
        self._ranges.push(f"iteration {self.iterations}")
        self._ranges.push("collection")
        self._conditions.begin(steal=self._marked)
        self._start_s = time.perf_counter()
        self._start = self._marks.now()

    def end_collection(self) -> None:
        self._collected = self._marks.now()
        self._ranges.pop()
        self._ranges.push("learning")

    def end(self) -> None:
        """Synchronise the device and note the iteration's times; ``write`` adds the library's own figures."""
        end = self._marks.now()
        self._marks.synchronize()
        iteration_time_s = time.perf_counter() - self._start_s
        conditions = self._conditions.end(marked=self._marked, long_enough=iteration_time_s >= LONG_ENOUGH_S)
        self._ranges.pop(2)
        sections = {f"{section.name}_time_s": section.drain() for section in self._sections}
        all_reduces = len(self.all_reduce.calls_s)
        self.samples.append(
            {
                "start_s": self._start_s - self.clock_zero_s,
                "iteration_time_s": iteration_time_s,
                "collection_time_s": self._marks.elapsed_s(self._start, self._collected),
                "learning_time_s": self._marks.elapsed_s(self._collected, end),
                "marked": float(self._marked),
                **sections,
                "all_reduce_calls": float(all_reduces) if self._marked else None,
                "all_reduce_bytes": float(self.all_reduce.drain_bytes()) if all_reduces else None,
                **conditions,
            }
        )
        if self._turns.are_kept:
            self.samples[-1]["turn"] = self._turn
        self._marks.recycle()
        if self.after_iteration is not None:
            self.after_iteration()

    def write(self, learning: Mapping[str, float | None]) -> None:
        """Write the iteration that just ended, with ``learning``: the library's rewards and times."""
        self.samples[-1].update(learning)
        self._log.iteration(self.iterations, self.samples[-1])
        self.iterations += 1
