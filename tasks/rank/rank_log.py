"""Writes a rank's raw samples, one JSON object per line, each flushed as it happens.

A killed run keeps every iteration that it finished. ARCHITECTURE.md describes the format; ``suite.records.rank_file``
reads it.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class RankLog:
    """Appends events to ``rank-N.jsonl``."""

    def __init__(self, run_dir: Path, rank: int) -> None:
        self.phases_s: dict[str, float] = {}
        self._stream = (run_dir / f"rank-{rank}.jsonl").open("a", encoding="utf-8", buffering=1)

    def write(self, event: str, **fields: Any) -> None:
        """Write one event.

        Raises:
            ValueError: a number is not finite; JSON cannot express it.
            OSError: the disk is full or gone.
        """
        self._stream.write(json.dumps({"event": event, **fields}, allow_nan=False) + "\n")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time one start-up phase [s] and write it when it ends."""
        start_s = time.perf_counter()
        yield
        self.phases_s[name] = time.perf_counter() - start_s
        self.write("phase", name=name, duration_s=self.phases_s[name])

    def iteration(self, iteration: int, samples: Mapping[str, float | None]) -> None:
        """Write the samples of one iteration.

        Raises:
            FloatingPointError: a value is not finite, so training has diverged and its speed means nothing.
        """
        diverged = {name: value for name, value in samples.items() if value is not None and not math.isfinite(value)}
        if diverged:
            raise FloatingPointError(f"iteration {iteration}: not finite: {diverged}")
        self.write("iteration", iteration=iteration, samples=samples)
