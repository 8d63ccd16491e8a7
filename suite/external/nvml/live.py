"""Reads GPUs several times a second during a run."""

import math
import time
from functools import partial
from typing import Final

import pynvml

from suite.external.nvml.queries import COUNTERS, LIVE_QUERIES, QUERIES, Answers, Queries
from suite.external.nvml.values import GpuReading
from suite.external.nvml.visible import visible_handles

# Just under a second, so that at 5 Hz every fifth sample has it. Reading the counter takes 4.1 ms of a core and all
# other live values 0.7 ms (an H200 in a virtual machine, driver 580.159.04, 2026-11-21). It misses nothing in between.
COUNT_EVERY_S: Final = 0.95


class LiveGpus:
    """Reads the first visible GPUs repeatedly while they work. It raises no error: ``notes`` says what failed."""

    def __init__(self, count: int) -> None:
        self.notes: dict[str, str] = {}  # what could not be read -> NVML's reason
        self.persistence: tuple[bool | None, ...] = ()  # mode of each GPU, read once: nobody sets it during a run
        self._handles: tuple[object, ...] = ()
        self._is_open = False
        self._counted_s = -math.inf  # when the energy counters were read
        if not count:
            return
        try:
            pynvml.nvmlInit()
            self._is_open = True
            self._handles = tuple(visible_handles())[:count]
        except pynvml.NVMLError as error:
            self.notes["GPUs"] = str(error)
            return
        if len(self._handles) < count:
            self.notes["GPUs"] = f"only {len(self._handles)} of {count} are visible"
        self.persistence = tuple(self._persistence(index, handle) for index, handle in enumerate(self._handles))

    def read(self) -> tuple[GpuReading, ...]:
        """Return one reading of each GPU; about once a second it includes the energy counter."""
        now_s = time.monotonic()
        is_counting = now_s - self._counted_s >= COUNT_EVERY_S
        if is_counting:
            self._counted_s = now_s
        queries = {**LIVE_QUERIES, **COUNTERS} if is_counting else LIVE_QUERIES
        return tuple(self._reading(index, handle, queries) for index, handle in enumerate(self._handles))

    def _persistence(self, index: int, handle: object) -> bool | None:
        answers = Answers()
        mode: bool | None = answers.ask("persistence", partial(QUERIES["persistence"], handle))
        self._note(index, answers)
        return mode

    def _reading(self, index: int, handle: object, queries: Queries) -> GpuReading:
        answers = Answers()
        utilisation = answers.ask("utilisation", partial(pynvml.nvmlDeviceGetUtilizationRates, handle))
        values = {name: answers.ask(name, partial(query, handle)) for name, query in queries.items()}
        self._note(index, answers)
        return GpuReading(
            index=index,
            sm_utilisation_percent=None if utilisation is None else utilisation.gpu,
            memory_utilisation_percent=None if utilisation is None else utilisation.memory,
            **values,
        )

    def _note(self, index: int, answers: Answers) -> None:
        for name, reason in answers.refused.items():
            self.notes.setdefault(f"GPU {index} {name}", reason)

    def close(self) -> None:
        """Close NVML."""
        if self._is_open:
            self._handles, self._is_open = (), False
            pynvml.nvmlShutdown()
