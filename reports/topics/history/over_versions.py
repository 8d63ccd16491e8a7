"""Speed-ups of one configuration in several versions of the report, and how they changed. Pure.

Two figures are of one configuration if the task, library, environments, settings, GPU model and number of GPUs in use
are equal. Machines may differ: several machines of one version are several figures.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.environments import PACKAGE_OF
from reports.analysis.same_work import work_of
from reports.analysis.scaling.lines import Line, Point, without_needless_rule
from reports.sets.version import ResultSet, Version
from reports.topics.history.comparison import DEFAULT_THRESHOLD, Comparison, Sign, compare, direction
from suite.files.wording import are, counted, joined
from suite.statistics.intervals import Estimate


def matched_sets(version: Version) -> tuple[tuple[ResultSet, ResultSet], ...]:
    """Return each shown campaign that the version before has too: that of the version before, and it."""
    known = {one.name: one for one in version.older[0].sets}
    return tuple((known[one.name], one) for one in version.scaling if one.name in known)


def compared_sets(old: ResultSet, new: ResultSet) -> Comparison | None:
    """Return None if they are of different people."""
    if _whose(old) != _whose(new):
        return None
    return compare(old.campaign.results, new.campaign.results)


def _whose(one: ResultSet) -> str | None:
    return one.contributor.name if one.contributor else None


AXIS_PACKAGES: Final = {"Isaac Lab": "isaaclab", "Newton": "newton", "torch": "torch"}
TOO_FEW: Final = "too few runs"
WORDS: Final[Mapping[Sign, str]] = {1: "higher", -1: "lower", 0: "unchanged", None: "within noise"}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The speed-up of a number of GPUs of one machine, in one version of the report."""

    version: str
    line: Line
    point: Point

    @property
    def configuration(self) -> str:
        """Such as ``Ant, 1,024 on each GPU, rl_games, 2 x H200``."""
        return ", ".join(self.parts)

    @property
    def parts(self) -> tuple[str, str]:
        """What was trained, and with what."""
        line = self.line
        return f"{line.task}, {line.work}", f"{line.library}, {self.point.gpus} x {line.gpu}"

    @property
    def work(self) -> tuple[str, ...]:
        """What is equal in two figures of one configuration."""
        return (self.line.gpu, self.line.mode, *work_of(self.point.case))

    @property
    def releases(self) -> str:
        """Such as ``Isaac Lab 3.0.0, Newton 1.6.1, torch 2.11.0``."""
        found = {spoken: self.line.versions.get(name) for spoken, name in AXIS_PACKAGES.items()}
        return ", ".join(f"{spoken} {version}" for spoken, version in found.items() if version)

    @property
    def library(self) -> str:
        """The RL library with its version, if that was recorded."""
        name = self.point.case.rl_library
        return f"{name} {self.line.versions.get(PACKAGE_OF[name], '')}".strip()


@dataclass(frozen=True, kw_only=True)
class Change:
    """One configuration in two versions. ``value``: of the speed-up, relative; above 0 it is higher now."""

    before: Measured
    now: Measured
    value: Estimate
    sign: Sign  # see ``direction``

    @property
    def verdict(self) -> str:
        return TOO_FEW if self.value.interval is None else WORDS[self.sign]

    @property
    def frames_ratio(self) -> float:
        """Frames per second now over those before."""
        return self.now.point.fps.value / self.before.point.fps.value


def measured(versions: Sequence[Version]) -> tuple[Measured, ...]:
    """Return every speed-up of several GPUs of the versions, in their order, sorted by configuration."""
    read = [
        (version.name, one, line) for version in versions for one in version.scaling for line in version.lines_of(one)
    ]
    lines = [line for _, _, line in read]
    found = [
        Measured(version=name, line=without_needless_rule(line, lines), point=point)
        for name, one, line in read
        for point in line.points[1:]
    ]
    return tuple(sorted(found, key=lambda each: (each.configuration, each.work)))


def changes_since_last(version: Version) -> tuple[Change, ...]:
    """Compare the figures of a version with those of the one before, which has to be there."""
    before = version.older[0]
    return changes(before.name, version.name, measured([before, version]))


def changes(before: str, now: str, found: Sequence[Measured]) -> tuple[Change, ...]:
    """Compare each figure of version ``now`` with each of the same configuration in version ``before``."""
    return tuple(
        _change(old, new)
        for new in found
        if new.version == now
        for old in found
        if old.version == before and old.work == new.work
    )


def again(found: Sequence[Measured]) -> set[tuple[str, ...]]:
    """Return the work of configurations that several versions measured."""
    pairs = {(each.work, each.version) for each in found}
    return {work for work, number in Counter(work for work, _ in pairs).items() if number > 1}


def compared(found: Sequence[Change]) -> set[tuple[str, ...]]:
    """Return the work of the configurations that were compared."""
    return {each.now.work for each in found}


def answer(before: str, found: Sequence[Change]) -> str:
    """Return what changed since version ``before``, in sentences."""
    if not found:
        return f"No speed-up of version {before} was measured again on the same GPUs, so none is known to have changed."
    number = counted(len(compared(found)), "configuration")
    verdicts = Counter(each.verdict for each in found)
    said = [f"{verdicts[word]} {are(verdicts[word])} {word}" for word in WORDS.values() if verdicts[word]]
    if few := verdicts[TOO_FEW]:
        said.append(f"{few} {'has' if few == 1 else 'have'} {TOO_FEW}")
    is_sure = any(each.sign for each in found)
    begin = "Speed-ups changed" if is_sure else "No speed-up has surely changed"
    of = f"of {counted(len(found), 'comparison')} of {number} on the same GPUs"
    return f"{begin} since version {before}: {of}, {joined(said)}."


def _change(before: Measured, now: Measured) -> Change:
    value = _ratio(now.point.speedup, before.point.speedup).mapped(lambda ratio: ratio - 1)
    return Change(before=before, now=now, value=value, sign=direction(value, DEFAULT_THRESHOLD))


def _ratio(over: Estimate, under: Estimate) -> Estimate:
    """The ratio of two independent figures: the half-widths of their intervals, of logarithms, add up as squares."""
    value = over.value / under.value
    if over.interval is None or under.interval is None:
        return Estimate(value=value, interval=None)
    factor = math.exp(math.hypot(*(math.log(high / low) / 2 for low, high in (over.interval, under.interval))))
    return Estimate(value=value, interval=(value / factor, value * factor))
