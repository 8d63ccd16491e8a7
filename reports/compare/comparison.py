"""Configurations before and after a change: slower, faster or unchanged, and whether that can be said at all. Pure.

Two configurations have the same id, or differ in the versions of packages alone. What was run, on what, and with which
software must be equal, or they are refused with every difference; ``across`` names differences that the comparison is
about. What one side alone states of the machine or its software is named; of the work, it is a difference.

The ratio is that of ``reports.figures.compare``: frames per second, after over before. Runs alone whose cores were
probed are compared at equal core speed. How far days and machines lie apart is not in the interval.

Of runs that shared their GPU only the outcomes are compared: no time of them means anything.
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from reports.data.facts import NOT_STATED, OF_THE_MACHINE, facts_of, work_of
from reports.data.frames import runs
from reports.figures.compare import Runs
from reports.figures.tables import runs_of
from reports.sets.version import Version
from suite.errors import UsageError
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import round_time_s

DEFAULT_THRESHOLD: Final = 0.02  # smaller changes are seldom worth a search for their cause
MOST: Final = 0.5  # of the runs: where more fail now, the configuration does

# What a comparison may be about. Everything else is other work, and a change of its time says nothing.
AXES: Final = (
    *OF_THE_MACHINE, "gpu_names", "image_digest", "versions.*", "settings.torch_num_threads", "settings.cpus_allowed",
    "settings.backend", "settings.cuda*", "settings.cudnn*", "settings.torch_allocator*", "interconnect",
)  # fmt: skip

type Word = Literal[
    "slower", "failed", "incomparable", "within noise", "too few runs", "not timed", "faster", "unchanged"
]
type Key = tuple[str, str]  # campaign, configuration
type Differences = Mapping[str, tuple[str, str]]  # fact -> before, after; several values are those of different runs


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A configuration before and after."""

    configuration: str
    word: Word
    reason: str
    refused: Differences  # why it is incomparable
    declared: Differences
    unstated: Differences  # of the machine and its software, by one side
    runs: tuple[int, int]  # completed
    iteration_s: tuple[float | None, float | None]
    ratio: Estimate | None  # of frames per second; None if it is refused, a side has no run, or no time means anything


@dataclass(frozen=True, kw_only=True)
class Comparison:
    configurations: Sequence[Compared]
    only_before: Sequence[str] = ()
    only_after: Sequence[str] = ()
    threshold: float

    @property
    def exit_code(self) -> int:
        """0: nothing is slower; 1: something is, or fails now; 2: something, or everything, cannot be compared."""
        words = {compared.word for compared in self.configurations}
        if not words or "incomparable" in words:
            return 2
        return 1 if words & {"slower", "failed"} else 0


def compare(before: Version, after: Version, *, threshold: float, across: Sequence[str] = ()) -> Comparison:
    """Compare the configurations that two folders of results have under one id."""
    _check(across)
    old, new = _results(before), _results(after)
    model = Runs(pl.concat([_marked(before, "before "), _marked(after, "after ")]), pl.DataFrame())
    configurations = []
    for key in sorted(old.keys() & new.keys()):
        ratio = _ratio(model, key[0], f"after {key[1]}", f"before {key[1]}")
        configurations.append(_compared(key, old[key], new[key], ratio, threshold, across))
    return Comparison(
        configurations=configurations,
        only_before=[_name(key) for key in sorted(old.keys() - new.keys())],
        only_after=[_name(key) for key in sorted(new.keys() - old.keys())],
        threshold=threshold,
    )


def compare_packages(version: Version, *, threshold: float, across: Sequence[str]) -> Comparison:
    """Compare configurations that asked for packages with the one of the same campaign that has the pinned versions.

    Raises UsageError if none asked for what ``across`` names.
    """
    _check(across)
    groups: dict[tuple[str, str], list[CaseResult]] = {}
    for (campaign, _), result in _results(version).items():
        groups.setdefault((campaign, repr(work_of(result.case))), []).append(result)
    configurations = []
    for (campaign, _), results in groups.items():
        pinned, *others = sorted(results, key=lambda result: bool(result.case.with_packages))
        for other in others:
            ratio = _ratio(runs_of(version), campaign, other.case.case_id, pinned.case.case_id)
            compared = _compared((campaign, other.case.case_id), pinned, other, ratio, threshold, across)
            asked = [f"versions.{package.partition('==')[0]}" for package in other.case.with_packages]
            if compared.declared or any(_matches(name, across) for name in asked):
                configurations.append(compared)
    if not configurations:
        raise UsageError(
            f"No two configurations differ in {', '.join(across)} and have the same work. Name a folder of a campaign"
            " with several versions, such as of the matrix releases, or two folders."
        )
    return Comparison(configurations=configurations, threshold=threshold)


def _check(across: Sequence[str]) -> None:
    for pattern in across:
        if not _matches(pattern, AXES):
            raise UsageError(
                f"{pattern!r} is no axis of a comparison. Allowed: {', '.join(AXES)}. Other differences are another"
                " workload: measure both sides of it in one campaign instead."
            )


def _results(version: Version) -> Mapping[Key, CaseResult]:
    return {
        (result_set.name or "results", own.case.case_id): own
        for result_set in version.sets
        for own in result_set.campaign.results
    }


def _name(key: Key) -> str:
    return key[1] if key[0] == "results" else "/".join(key)


def _marked(version: Version, side: str) -> pl.DataFrame:
    """The runs of a version, whose configurations and blocks are told apart from those of the other side."""
    marked = {name: pl.lit(side) + pl.col(name) for name in ("configuration", "block")}
    return runs(version).with_columns(**marked)


def _ratio(model: Runs, campaign: str, of: str, over: str) -> Estimate | None:
    rows = {row["configuration"]: row for row in model.configurations if row["set"] == campaign}
    if not {of, over} <= rows.keys() or rows[of]["only_learning"] or rows[over]["only_learning"]:
        return None
    return model.ratio(rows[of], rows[over])


# --- one configuration ---


def _compared(
    key: Key, before: CaseResult, after: CaseResult, ratio: Estimate | None, threshold: float, across: Sequence[str]
) -> Compared:
    different = dict(_differences(before, after))
    declared = {name: values for name, values in different.items() if _matches(name, across)}
    unstated = {
        name: values
        for name, values in different.items()
        if name not in declared and NOT_STATED in values and _matches(name, AXES)
    }
    refused = {name: values for name, values in different.items() if name not in {*declared, *unstated}}
    word: Word
    word, reason = ("incomparable", "because of") if refused else _judged(before, after, ratio, threshold)
    return Compared(
        configuration=_name(key),
        word=word,
        reason=reason,
        refused=refused,
        declared=declared,
        unstated=unstated,
        runs=(len(before.completed), len(after.completed)),
        iteration_s=(_iteration_s(before), _iteration_s(after)),
        ratio=None if refused else ratio,
    )


def _iteration_s(result: CaseResult) -> float | None:
    if not result.completed or result.case.only_learning:
        return None
    return mean_of([round_time_s(record) for record in result.completed]).value


def _differences(before: CaseResult, after: CaseResult) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield what is unlike. Runs of one side that differ among themselves are a mixture.

    A configuration that has no place now does not fail: it cannot be compared. One that never completed states only
    its work.
    """
    if before.completed and after.rounds and not _failures(after)[1]:
        yield "outcome", ("completed", f"{after.rounds[-1].outcome}: {after.rounds[-1].reason}")
    old, new = facts_of(before), facts_of(after)
    for name in sorted(old.keys() | new.keys() if before.completed and after.completed else old.keys() & new.keys()):
        values = old.get(name, (NOT_STATED,)), new.get(name, (NOT_STATED,))
        if values[0] != values[1] or len(values[0]) > 1:
            yield name, (" or ".join(values[0]), " or ".join(values[1]))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _judged(before: CaseResult, after: CaseResult, ratio: Estimate | None, threshold: float) -> tuple[Word, str]:
    if not before.completed:
        return "too few runs", "no run completed before"
    (failed_before, tried_before), (failed, tried) = _failures(before), _failures(after)
    shares, failures = (failed_before / tried_before, failed / tried), ""
    if shares[1] > shares[0]:
        failures = f"; {failed} of {tried} runs failed after, {failed_before} of {tried_before} before"
    if not after.completed or shares[1] > MOST >= shares[0]:
        return "failed", f"{'most runs fail now' if after.completed else 'no run completes any more'}{failures}"
    if ratio is None:
        return "not timed", f"its runs shared a GPU, so no time of them means anything{failures}"
    word, reason = _of_ratio(ratio, threshold)
    return word, reason + failures


def _failures(result: CaseResult) -> tuple[int, int]:
    """How many runs failed, and of how many: not those without a place, nor those that lost it."""
    tried = [record.outcome for record in result.rounds if record.outcome not in {"skipped", "lost"}]
    return len(tried) - tried.count("completed"), len(tried)


def _of_ratio(ratio: Estimate, threshold: float) -> tuple[Word, str]:
    """Doubling and halving are equally large changes."""
    if ratio.interval is None:
        return "too few runs", "more runs on both sides would give an interval"
    least, most = 1 / (1 + threshold), 1 + threshold
    low, high = ratio.interval
    if ratio.value < least and high < 1:
        return "slower", f"by more than {threshold:.1%}"
    if ratio.value > most and low > 1:
        return "faster", f"by more than {threshold:.1%}"
    if least <= low and high <= most:
        return "unchanged", f"the whole interval is within {threshold:.1%}"
    return "within noise", f"it may be more or less than {threshold:.1%}; more runs would tell"
