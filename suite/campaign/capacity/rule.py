"""Find how many environments fit on one GPU: by doubling, then by bisection. Pure.

The search doubles the environments until memory runs out or the throughput stops rising. Then it bisects the gap that
contains the answer. If memory is the bound, the answer is the largest number that ran. If throughput is the bound, the
answer is the smallest number that reaches the best throughput seen: more environments cost memory and learning steps,
and gain nothing. Running out of memory is a normal outcome of a trial. Any other failure ends the search, because
nothing is known beyond it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from suite.schema.record import Outcome

MIN_RISE: Final = 0.05  # relative; a doubling that gains less does not count: fresh processes differ by about 3 %
RESOLUTION: Final = 1 / 8  # of the answer; each further bisection costs a process

type Bound = Literal["memory", "throughput", "asked", "failure"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """All rounds of one number of environments."""

    num_envs: int
    outcome: Outcome  # "completed" if any round completed
    fps: float | None  # environment steps per second, learning included; None unless completed


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The answer, what bounds it, and the nearest number beyond it that was tried."""

    num_envs: int | None  # None: not even the first number ran
    fps: float | None
    bound: Bound
    beyond: int | None  # memory: the smallest number that did not fit; throughput: the largest that is too slow
    reason: str


def next_step(trials: Sequence[Trial], *, start: int, granularity: int = 1, most: int | None = None) -> int | Capacity:
    """Return the next number of environments to try, or the answer.

    The first number is ``start``, which is at most ``most``. The others are its doubles up to ``most``, and multiples
    of ``granularity`` between them.
    """
    search = _Search(trials={trial.num_envs: trial for trial in trials}, granularity=granularity)
    doubled = [start]
    while True:
        trial = search.trials.get(doubled[-1])
        if trial is None:
            return doubled[-1]
        if trial.outcome == "oom":
            return search.memory(doubled)
        if trial.fps is None:
            return search.failure(doubled)
        if search.has_stopped_rising(doubled):
            return search.throughput(doubled)
        if most is not None and 2 * doubled[-1] > most:
            seen = f"throughput still rises at {doubled[-1]}" if len(doubled) > 1 else f"only {start} were tried"
            reason = f"{seen}, and the limit is {most}"
            return Capacity(num_envs=doubled[-1], fps=trial.fps, bound="asked", beyond=None, reason=reason)
        doubled.append(2 * doubled[-1])


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The trials so far. Each method that ends the doubling returns the next number to try, or the answer."""

    trials: dict[int, Trial]
    granularity: int

    def fps(self, num_envs: int) -> float:
        """Throughput of a completed trial [frames/s]."""
        fps = self.trials[num_envs].fps
        if fps is None:
            raise AssertionError(f"{num_envs} environments have no throughput")
        return fps

    def has_stopped_rising(self, doubled: Sequence[int]) -> bool:
        return len(doubled) > 1 and self.fps(doubled[-1]) < (1 + MIN_RISE) * self.fps(doubled[-2])

    def failure(self, doubled: Sequence[int]) -> Capacity:
        failed = self.trials[doubled[-1]]
        good = doubled[-2] if len(doubled) > 1 else None
        return Capacity(
            num_envs=good,
            fps=None if good is None else self.fps(good),
            bound="failure",
            beyond=failed.num_envs,
            reason=f"{failed.num_envs} ended as {failed.outcome}, which tells nothing about memory or throughput",
        )

    def memory(self, doubled: Sequence[int]) -> int | Capacity:
        beyond = doubled[-1]
        if len(doubled) == 1:
            reason = f"{beyond} do not fit in memory; begin with fewer"
            return Capacity(num_envs=None, fps=None, bound="memory", beyond=beyond, reason=reason)
        good = doubled[-2]
        while (between := self.between(good, beyond)) is not None:
            trial = self.trials.get(between)
            if trial is None:
                return between
            if trial.outcome == "oom":
                beyond = between
            elif trial.fps is None:
                return self.failure([good, between])
            else:
                good = between
        reason = f"{good} fit in memory, {beyond} do not"
        return Capacity(num_envs=good, fps=self.fps(good), bound="memory", beyond=beyond, reason=reason)

    def throughput(self, doubled: Sequence[int]) -> int | Capacity:
        target = (1 - MIN_RISE) * max(map(self.fps, doubled))
        at = next(index for index, num_envs in enumerate(doubled) if self.fps(num_envs) >= target)
        enough, slower = doubled[at], doubled[at - 1] if at else None
        while slower is not None and (between := self.between(slower, enough)) is not None:
            trial = self.trials.get(between)
            if trial is None:
                return between
            if trial.fps is None:
                return self.failure([slower, between])
            if trial.fps >= target:
                enough = between
            else:
                slower = between
        reason = f"{doubled[-1]} are less than {MIN_RISE:.0%} faster than {doubled[-2]}"
        return Capacity(num_envs=enough, fps=self.fps(enough), bound="throughput", beyond=slower, reason=reason)

    def between(self, low: int, high: int) -> int | None:
        """The middle as a multiple of the granularity; None if the gap is small enough or contains no multiple."""
        if high - low <= max(self.granularity, RESOLUTION * low):
            return None
        middle = (low + high) // 2 // self.granularity * self.granularity
        return middle if middle > low else None
