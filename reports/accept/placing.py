"""Where a value of one machine stands among those of others: the rule of every verdict of `accept`. Pure.

More is always slower. A value is ``slow`` if its whole 95 % interval is above the slowest other machine, ``fast`` if it
is below the quickest, else ``within``. It is ``open`` with fewer than three runs, which have no interval, and without
another machine.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, median_of

type Word = Literal["slow", "within", "fast", "open"]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A value of this machine, the median over its runs, and the medians of other machines by their names."""

    value: Estimate | None  # None without a run that has the value
    runs: int
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def quickest(self) -> float | None:
        return min(self.others.values(), default=None)

    @property
    def middle(self) -> float | None:
        """The median over the other machines."""
        return statistics.median(self.others.values()) if self.others else None

    @property
    def slowest(self) -> float | None:
        return max(self.others.values(), default=None)

    @property
    def over_slowest(self) -> float | None:
        """How many times the slowest machine's value it is; None if there is none, or that is 0."""
        return self.value.value / self.slowest if self.value and self.slowest else None

    @property
    def added(self) -> float | None:
        """What it is more than the median machine's; None if either is missing."""
        return self.value.value - self.middle if self.value and self.middle is not None else None

    @property
    def word(self) -> Word:
        interval = self.value and self.value.interval
        if not interval or self.quickest is None or self.slowest is None:
            return "open"
        if interval[0] > self.slowest:
            return "slow"
        return "fast" if interval[1] < self.quickest else "within"


def placed(values: Sequence[float], others: Mapping[str, Sequence[float]]) -> Placed:
    """Place this machine's ``values``, one of each run, among those of ``others``, by the names of machines.

    Values are 0 or more. Where one is 0, as a share may be, nothing has a logarithm, and the interval is their range.
    """
    return Placed(
        value=_estimate(values),
        runs=len(values),
        others={name: statistics.median(theirs) for name, theirs in others.items() if theirs},
    )


def _estimate(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    if min(values) > 0:
        return median_of(values)
    interval = (min(values), max(values)) if len(values) >= MIN_ROUNDS_FOR_INTERVAL else None
    return Estimate(value=statistics.median(values), interval=interval)
