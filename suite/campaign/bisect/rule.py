"""Find between which two releases a case became surely slower, by bisection. Pure.

Both ends are measured first. Unless the newer end is surely slower, the search ends: then it names no pair. Otherwise
the release in the middle is measured together with both ends, and the half with the larger surely slower change is
searched further. A release that cannot be run is passed over, and the next one to it is taken. If neither half is
surely slower, the search ends with the range that it has.

Each step compares releases that were measured together, since a machine changes within minutes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Self

from suite.statistics.intervals import Estimate
from suite.statistics.speed import Speed, speed_of

type Verdict = Literal["found", "not slower", "unsure", "too few"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """The change from one release to a newer one."""

    older: str
    newer: str
    ratio: Estimate  # throughput of the newer one over that of the older one

    @property
    def speed(self) -> Speed:
        """Whether the newer one is surely faster or slower."""
        return speed_of(self.ratio)


@dataclass(frozen=True, kw_only=True)
class Step:
    """Releases that were measured together: both ends, or both ends and one between them."""

    releases: tuple[str, ...]  # the oldest first
    changes: tuple[Change, ...]  # from each to the next
    times_s: Mapping[str, Sequence[float]] = field(default_factory=dict)  # per iteration, one of each completed run

    @classmethod
    def of(cls, times_s: Mapping[str, Sequence[float]], ratio: Callable[[str, str], Estimate]) -> Self:
        """The step with these times per iteration [s] of each release's completed runs, the oldest release first.

        ``ratio`` returns the throughput of a newer release, its second argument, over that of an older one.
        """
        changes = (Change(older=older, newer=newer, ratio=ratio(older, newer)) for older, newer in pairwise(times_s))
        return cls(releases=tuple(times_s), changes=tuple(changes), times_s=times_s)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the search found, and the change that shows it."""

    verdict: Verdict
    change: Change | None  # None if too few releases run
    skipped: tuple[str, ...] = ()  # releases between both that could not be run
    middle: str | None = None  # unsure: the release between both, with no sure change to it or from it


def next_step(
    releases: Sequence[str], steps: Collection[Step], skipped: Collection[str] = ()
) -> tuple[str, ...] | Answer:
    """Return the releases to measure together next, or the answer.

    ``releases``: the oldest first. ``steps``: what was measured so far. ``skipped``: releases that could not be run.
    """
    measured = {step.releases: step for step in steps}
    usable = [release for release in releases if release not in skipped]
    if len(usable) <= 1:
        return Answer(verdict="too few", change=None)
    if (ends := measured.get((usable[0], usable[-1]))) is None:
        return usable[0], usable[-1]
    (change,) = ends.changes
    if change.speed != "slower":
        return Answer(verdict="not slower", change=change)
    while between := usable[usable.index(change.older) + 1 : usable.index(change.newer)]:
        together = (change.older, between[len(between) // 2], change.newer)
        if (step := measured.get(together)) is None:
            return together
        slower = [half for half in step.changes if half.speed == "slower"]
        if not slower:
            return Answer(verdict="unsure", change=change, middle=together[1])
        change = min(slower, key=lambda half: half.ratio.value)
    within = releases[releases.index(change.older) + 1 : releases.index(change.newer)]
    return Answer(verdict="found", change=change, skipped=tuple(within))
