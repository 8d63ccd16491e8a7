"""The parts of a machine that `accept` looks at, each a column of runs, and where a value is among others. Pure.

A value that a run does not have is null. Parts of an iteration are shares of its time; a single-part test is its part
throughout. More is slower, except for power, which is no fault either way.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, mean_of

HIDDEN: Final = 0.2  # a machine that is slower by as much is not accepted unseen

type Word = Literal["slow", "within", "fast", "open"]
type Kind = Literal["cause", "time", "start", "sign"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """``kind``: a cause by itself, a part of an iteration's time, of a start, or a sign that is no fault.

    ``points_to`` is the hardware that a slow value speaks of.
    """

    name: str
    points_to: str
    unit: str
    kind: Kind
    value: pl.Expr  # of the table of runs


def _time_s(*shares: str, alone: str = "") -> pl.Expr:
    """Seconds of an iteration: some shares of it in training, all of it in the single-part test ``alone``."""
    known = [pl.col(share) for share in shares]
    share = pl.when(pl.any_horizontal(column.is_not_null() for column in known)).then(pl.sum_horizontal(known))
    of_training = pl.when(pl.col("workload") == "train").then(share)
    return pl.col("iteration_s") * pl.when(pl.col("workload") == alone).then(1.0).otherwise(of_training)


PARTS: Final = (
    Part(name="core probe", points_to="CPU core", unit="µs", kind="cause", value=pl.col("core_probe_us")),
    Part(name="throttled", points_to="GPU", unit="%", kind="cause", value=100 * pl.col("throttled_share")),
    Part(
        name="all-reduce", points_to="interconnect", unit="s", kind="time",
        value=pl.when(pl.col("gpus") > 1).then(_time_s("all_reduce_share", alone="all_reduce")),
    ),
    Part(
        name="environment step", points_to="GPU or CPU core", unit="s", kind="time",
        value=_time_s("simulate_share", "render_share", "environment_share", alone="environment_step"),
    ),
    Part(name="learning", points_to="GPU or CPU core", unit="s", kind="time", value=_time_s("learn_share")),
    Part(
        name="rest of iteration", points_to="CPU core", unit="s", kind="time",
        value=_time_s("infer_share", "other_share"),
    ),
    Part(name="imports", points_to="disk", unit="s", kind="start", value=pl.col("imports_s")),
    Part(
        name="start after imports", points_to="disk or compiler", unit="s", kind="start",
        value=pl.col("start_s") - pl.col("imports_s"),
    ),
    Part(
        name="power of a GPU", points_to="GPU", unit="W", kind="sign", value=pl.col("power_w") / pl.col("gpus"),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A value of this machine, the mean over its runs, and the values of other machines by their names."""

    value: Estimate
    runs: int
    others: Mapping[str, float]

    @property
    def middle(self) -> float | None:
        """The median over the other machines."""
        return statistics.median(self.others.values()) if self.others else None

    @property
    def slowest(self) -> float | None:
        return max(self.others.values(), default=None)

    @property
    def over_slowest(self) -> float:
        """How many times the slowest machine's value it is; 0 if there is none, or that is 0."""
        return self.value.value / self.slowest if self.slowest else 0.0

    @property
    def added(self) -> float | None:
        """What it is more than the median machine's; None without one."""
        return None if self.middle is None else self.value.value - self.middle

    @property
    def would_see(self) -> float | None:
        """How much slower than the median machine this one had to be for ``slow``, by its interval; relative."""
        low = self.value.interval and self.value.interval[0]
        return self.slowest / self.middle * self.value.value / low - 1 if low and self.middle and self.slowest else None

    @property
    def hides(self) -> float | None:
        """How much slower than the median machine it may be, if that is ``HIDDEN`` or more and is not seen."""
        if self.word != "within" or not self.value.interval or not self.middle:
            return None
        most = self.value.interval[1]
        return most / self.middle - 1 if most > max(*self.others.values(), (1 + HIDDEN) * self.middle) else None

    @property
    def word(self) -> Word:
        if not self.value.interval or not self.others:
            return "open"
        low, high = self.value.interval
        if low > max(self.others.values()):
            return "slow"
        return "fast" if high < min(self.others.values()) else "within"


def placed(values: Sequence[float], others: Mapping[str, Sequence[float]]) -> Placed:
    """Place this machine's ``values``, one of each run, among those of ``others``, by the names of machines.

    Values are 0 or more. Where one is 0, as a share may be, nothing has a logarithm, and the interval is their range.
    """
    means = {name: _estimate(theirs).value for name, theirs in others.items()}
    return Placed(value=_estimate(values), runs=len(values), others=means)


def _estimate(values: Sequence[float]) -> Estimate:
    if min(values) > 0:
        return mean_of(values)
    interval = (min(values), max(values)) if len(values) >= MIN_ROUNDS_FOR_INTERVAL else None
    return Estimate(value=statistics.median(values), interval=interval)
