"""The parts of a machine that `accept` looks at, each with its value in one run. Pure.

A value that a run does not have is None. Parts of an iteration come from its marked iterations; a single-part test is
its part throughout. More is slower, except for power, which is no fault either way.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal

from reports.analysis.time_split import core_probe_us, samples_at
from suite.schema.record import RankRecord, RunRecord, Workload
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, mean_of
from suite.statistics.reduce import marked_iterations, round_time_s
from suite.statistics.start_up import start_up

HIDDEN: Final = 0.2  # a machine that is slower by as much is not accepted unseen

type Word = Literal["slow", "within", "fast", "open"]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A value of this machine, the mean over its runs, and the values of other machines by their names."""

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
    def would_see(self) -> float | None:
        """How much slower than the median machine this one had to be for ``slow``, by its interval; relative."""
        interval = self.value and self.value.interval
        if not self.value or not interval or not interval[0] or not self.middle or self.slowest is None:
            return None
        return self.slowest / self.middle * self.value.value / interval[0] - 1

    @property
    def may_hide(self) -> bool:
        """Whether the interval reaches a machine that is slower than the median one by ``HIDDEN``, and is not slow."""
        interval = self.value and self.value.interval
        return bool(
            interval and self.middle and self.slowest and max(self.slowest, (1 + HIDDEN) * self.middle) < interval[1]
        )

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
        others={name: _middle(theirs) for name, theirs in others.items() if theirs},
    )


def _middle(values: Sequence[float]) -> float:
    return mean_of(values).value if min(values) > 0 else statistics.median(values)


def _estimate(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    if min(values) > 0:
        return mean_of(values)
    interval = (min(values), max(values)) if len(values) >= MIN_ROUNDS_FOR_INTERVAL else None
    return Estimate(value=statistics.median(values), interval=interval)


type Kind = Literal["cause", "time", "start", "sign"]
IMPORTS: Final = ("imports_torch", "imports")


@dataclass(frozen=True, kw_only=True)
class Part:
    """``kind``: a cause by itself, a part of an iteration's time, of a start, or a sign that is no fault.

    ``points_to`` is the hardware that a slow value speaks of.
    """

    name: str
    points_to: str
    unit: str
    kind: Kind
    value: Callable[[RunRecord], float | None]

    def is_like(self, one: RunRecord, other: RunRecord) -> bool:
        """Whether the values of two runs can be compared. Runs in turns start together, so their starts take longer."""
        return self.kind != "start" or (one.turns is None) == (other.turns is None)


def environment_step_s(record: RunRecord) -> float | None:
    """Seconds inside environment steps in an iteration, of the slowest rank."""
    return _alone(record, "environment_step") or max(
        _of_ranks(record, _column("environment_step_time_s")), default=None
    )


def learning_s(record: RunRecord) -> float | None:
    """Seconds of learning in an iteration without its all-reduce, of the slowest rank."""
    return max(_of_ranks(record, _without_all_reduce), default=None) if record.case.learns else None


def all_reduce_s(record: RunRecord) -> float | None:
    """Seconds inside all-reduce in an iteration, of the rank that waits least for others; None for one rank."""
    if record.case.world_size == 1:
        return None
    return _alone(record, "all_reduce") or min(_of_ranks(record, _column("all_reduce_time_s")), default=None)


def rest_s(record: RunRecord) -> float | None:
    """Seconds of an iteration beyond environment steps and learning, of the slowest rank."""
    return max(_of_ranks(record, _rest), default=None) if record.case.learns else None


def imports_s(record: RunRecord) -> float | None:
    """Seconds in which a process reads its modules, of the slowest rank."""
    known = [[phases[name] for name in IMPORTS if name in (phases := rank.phases_s)] for rank in record.ranks]
    return max((sum(times_s) for times_s in known if times_s), default=None)


def start_after_imports_s(record: RunRecord) -> float | None:
    """Seconds from the imports to the end of the first iteration: the scene, and kernels compiled or loaded."""
    imports = imports_s(record)
    return None if imports is None else start_up(record).total_s - imports


def throttled_percent(record: RunRecord) -> float | None:
    """Part of the time in which the GPU that was throttled most was."""
    shares = [gpu.throttled_share for gpu in record.telemetry.gpus] if record.telemetry else []
    return max((100 * share for share in shares if share is not None), default=None)


def power_per_gpu_w(record: RunRecord) -> float | None:
    power = record.telemetry and record.telemetry.power_w
    return power.mean / record.case.world_size if power else None


PARTS: Final = (
    Part(name="core probe", points_to="CPU core", unit="µs", kind="cause", value=core_probe_us),
    Part(name="throttled", points_to="GPU", unit="%", kind="cause", value=throttled_percent),
    Part(name="all-reduce", points_to="interconnect", unit="s", kind="time", value=all_reduce_s),
    Part(name="environment step", points_to="GPU or CPU core", unit="s", kind="time", value=environment_step_s),
    Part(name="learning", points_to="GPU or CPU core", unit="s", kind="time", value=learning_s),
    Part(name="rest of iteration", points_to="CPU core", unit="s", kind="time", value=rest_s),
    Part(name="imports", points_to="disk", unit="s", kind="start", value=imports_s),
    Part(name="start after imports", points_to="disk or compiler", unit="s", kind="start", value=start_after_imports_s),
    Part(name="power of a GPU", points_to="GPU", unit="W", kind="sign", value=power_per_gpu_w),
)

type _Times = Callable[[RankRecord, tuple[int, ...]], list[float]]


def _alone(record: RunRecord, workload: Workload) -> float | None:
    """The iteration of a single-part test of this workload; None for any other case."""
    return round_time_s(record) if record.case.workload == workload else None


def _of_ranks(record: RunRecord, times: _Times) -> list[float]:
    """The median of each rank; nothing if a rank has none."""
    counted = marked_iterations(record)
    found = [times(rank, counted) for rank in record.ranks]
    return [statistics.median(of_rank) for of_rank in found] if all(found) else []


def _column(name: str) -> _Times:
    return lambda rank, counted: [time_s for time_s in samples_at(rank, name, counted) if time_s is not None]


def _without_all_reduce(rank: RankRecord, counted: tuple[int, ...]) -> list[float]:
    learned, reduced = (samples_at(rank, name, counted) for name in ("learning_time_s", "all_reduce_time_s"))
    pairs = zip_longest(learned, reduced)  # one rank alone has no all-reduce
    return [time_s - (less or 0.0) for time_s, less in pairs if time_s is not None]


def _rest(rank: RankRecord, counted: tuple[int, ...]) -> list[float]:
    names = ("iteration_time_s", "environment_step_time_s", "learning_time_s")
    rows = zip(*(samples_at(rank, name, counted) for name in names), strict=False)
    return [row[0] - row[1] - row[2] for row in rows if row[0] and row[1] is not None and row[2] is not None]
