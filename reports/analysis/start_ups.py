"""What the rounds of a case took until they trained, cold and warm apart. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.schema.record import CaseResult
from suite.statistics.start_up import COLD_FACTOR, Start, StartUp, classify, start_up

SAID: Final = (
    "From the first line of a process to the end of its first iteration, median of the rounds. Cold: kernels were "
    f"compiled in the round, or, where its record does not say, it took over {COLD_FACTOR:g} times as long as the "
    "shortest of the case. A new size adds few kernels to those that are there already, a new machine compiles them "
    "all: cold starts are alike where the numbers of kernels are. Scene and first iteration: their part of the warm "
    "ones, or of all where none is known to be warm; the rest is imports, settings, the simulator's launch, and until "
    "the ranks are joined and the library has prepared itself. The launcher, containers and queues come before it and "
    "are not in it; and none of it is in an iteration time."
)


@dataclass(frozen=True, kw_only=True)
class StartUps:
    """Starts of one case by whether they were cold; None is not known."""

    by_kind: dict[Start | None, tuple[StartUp, ...]]

    def median_s(self, kind: Start | None) -> float | None:
        """Of all that it took [s]; None without such a start."""
        return median_of_known([start.total_s for start in self.by_kind.get(kind, ())])

    @property
    def kernels_compiled(self) -> tuple[int, ...]:
        """In each of the cold ones of which it is known."""
        known = (start.kernels_compiled for start in self.by_kind.get("cold", ()))
        return tuple(sorted(count for count in known if count is not None))

    @property
    def usual(self) -> tuple[StartUp, ...]:
        """The warm ones, or all where none is known to be."""
        return self.by_kind.get("warm") or tuple(start for found in self.by_kind.values() for start in found)


def start_ups(result: CaseResult) -> StartUps:
    """The starts of the completed rounds. Raises ValueError as ``suite.statistics.start_up.start_up`` does."""
    starts = [start_up(record) for record in result.completed]
    found: dict[Start | None, tuple[StartUp, ...]] = {}
    for start, kind in zip(starts, classify(starts), strict=True):
        found[kind] = (*found.get(kind, ()), start)
    return StartUps(by_kind=found)


def median_of_known(values: Sequence[float | None]) -> float | None:
    """The median of those that are not None; None without any."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None
