"""Two sets of results case by case: slower, faster, or as before, and whether that can be said at all. Pure.

Cases are matched by their id. What a case is, what it ran on and with which versions must be equal, or the case is
refused with every difference; a difference that the comparison is about is declared as an axis. A change counts when it
is beyond the threshold and the interval of the ratio excludes no change. Two campaigns met other minutes of their
machine, which no interval of one of them contains. A case that most rounds do not complete any more fails now.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis.rows import case_times
from reports.topics.history.likeness import Difference, differences
from suite.errors import UsageError
from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, Rounds, mean_of, ratio_of

BETWEEN_CAMPAIGNS: Final = "How far hosts and days lie apart is not in an interval."
MAX_NAMED: Final = 12  # differences of a case in a sentence; a change of the task can bring a hundred
MOST: Final = 0.5  # of the rounds: where more fail now, the case does
DEFAULT_THRESHOLD: Final = 0.02  # smaller changes are seldom worth a search for their cause

# What a comparison may be about. Everything else is another workload, and a change of its time says nothing.
AXES: Final = (
    "cpu_model", "num_cpus", "os", "kernel", "driver_version", "cuda_driver_version", "suite_version",
    "worker_pins_sha256", "worker_packages", "gpu_names", "image_digest", "versions.*", "settings.torch_num_threads",
    "settings.cpus_allowed", "settings.backend", "settings.cuda*", "settings.cudnn*", "settings.torch_allocator*",
    "interconnect",
)  # fmt: skip
type Sign = Literal[-1, 0, 1] | None
type Word = Literal["regression", "improvement", "unchanged", "within noise", "too few runs", "failed", "incomparable"]


@dataclass(frozen=True, kw_only=True)
class CaseComparison:
    case_id: str
    word: Word
    reason: str
    differences: tuple[Difference, ...]  # why it is refused
    across: tuple[Difference, ...]  # that were declared
    before_rounds: int
    after_rounds: int
    before_time_s: float | None  # mean seconds per iteration
    after_time_s: float | None
    change: Estimate | None  # of the time, relative; above 0: slower. None when incomparable


@dataclass(frozen=True, kw_only=True)
class Comparison:
    cases: tuple[CaseComparison, ...]
    only_before: tuple[str, ...]  # case ids
    only_after: tuple[str, ...]
    threshold: float

    @property
    def exit_code(self) -> int:
        """0: nothing got worse; 1: something did, or fails now; 2: something, or everything, cannot be compared."""
        words = {case.word for case in self.cases}
        if not words or "incomparable" in words:
            return 2
        return 1 if words & {"regression", "failed"} else 0


def compare(
    before: Sequence[CaseResult],
    after: Sequence[CaseResult],
    *,
    threshold: float = DEFAULT_THRESHOLD,
    across: Sequence[str] = (),
) -> Comparison:
    """Compare the cases of one id. ``across``: names or patterns of ``AXES``.

    Raises UsageError for an axis that is none, and a threshold that is no share.
    """
    _check(across, threshold)
    old, new = ({result.case.case_id: result for result in results} for results in (before, after))
    return Comparison(
        cases=tuple(
            _compared(old[case_id], new[case_id], margin=threshold, across=across)
            for case_id in sorted(old.keys() & new.keys())
        ),
        only_before=tuple(sorted(old.keys() - new.keys())),
        only_after=tuple(sorted(new.keys() - old.keys())),
        threshold=threshold,
    )


def _check(across: Sequence[str], threshold: float) -> None:
    for pattern in across:
        if not any(fnmatch.fnmatchcase(pattern, axis) for axis in AXES):
            raise UsageError(
                f"{pattern!r} is no axis of a comparison. Allowed: {', '.join(AXES)}. Other differences are another"
                " workload: measure both sides of it in one campaign instead."
            )
    if not 0 <= threshold < 1:
        raise UsageError(f"threshold is {threshold:.2%}; allowed are 0 % to below 100 %.")


# --- one case ----------------------------------------------------------------------------------------------------


def _compared(before: CaseResult, after: CaseResult, *, margin: float, across: Sequence[str]) -> CaseComparison:
    found = differences(before, after)
    declared = tuple(item for item in found if any(fnmatch.fnmatchcase(item.name, name) for name in across))
    refused = tuple(item for item in found if item not in declared)
    old, new = case_times(before), case_times(after)
    change: Estimate | None = None
    if not refused and old and new:
        change = ratio_of(new.values(), old.values()).mapped(lambda ratio: ratio - 1)
    word: Word
    word, reason = ("incomparable", _names(refused)) if refused else _judged(before, after, change, margin)
    if change is not None:
        reason += _failures(before, after)
    return CaseComparison(
        case_id=before.case.case_id,
        word=word,
        reason=reason,
        differences=refused,
        across=declared,
        before_rounds=len(old),
        after_rounds=len(new),
        before_time_s=_mean(old),
        after_time_s=_mean(new),
        change=change,
    )


def _judged(before: CaseResult, after: CaseResult, change: Estimate | None, margin: float) -> tuple[Word, str]:
    by_outcomes = _by_outcomes(before, after)
    if by_outcomes is not None:
        return by_outcomes
    if change is None:
        return "failed", "no round completes any more"
    if change.interval is None:
        few = f"{len(before.completed)} and {len(after.completed)} rounds completed"
        return "too few runs", f"{few}, and an interval needs {MIN_ROUNDS_FOR_INTERVAL} on both sides"
    sign = direction(change, margin)
    if sign:
        word: Word = "regression" if sign > 0 else "improvement"
        return word, f"{'slower' if sign > 0 else 'faster'}, beyond {margin:.1%}"
    if sign == 0:
        return "unchanged", f"the whole interval is within {margin:.1%}"
    is_beyond = not _is_within(change.value, margin)
    why = "the rounds of one set differ as much" if is_beyond else f"it may be more or less than {margin:.1%}"
    return "within noise", f"{why}; more rounds would tell"


def _is_within(change: float, margin: float) -> bool:
    """Whether a relative change is at most ``margin``. Doubling and halving are equally large."""
    return 1 / (1 + margin) <= 1 + change <= 1 + margin


def direction(change: Estimate, margin: float) -> Sign:
    """Return the sign of a relative change that is surely one, 0 if all of its interval is within ``margin``.

    None: the interval allows more than one answer, or there is none.
    """
    if change.interval is None:
        return None
    low, high = change.interval
    if not _is_within(change.value, margin) and (low > 0 or high < 0):
        return 1 if low > 0 else -1
    return 0 if _is_within(low, margin) and _is_within(high, margin) else None


def _by_outcomes(before: CaseResult, after: CaseResult) -> tuple[Word, str] | None:
    """None where what decides are the times, or that there are none any more."""
    if not before.completed:
        return "too few runs", "no round completed before"
    if not _tried(after):
        why = after.rounds[-1].reason if after.rounds else "there is none"
        return "incomparable", f"no round ran to an end of its own after: {why}"
    if after.completed and _share_that_failed(after) > MOST >= _share_that_failed(before):
        return "failed", "most rounds do not complete any more"
    return None


def _tried(result: CaseResult) -> list[RunRecord]:
    """The rounds that say whether the case runs: not those without a place, nor those that lost it."""
    return [record for record in result.rounds if record.outcome not in {"skipped", "lost"}]


def _share_that_failed(result: CaseResult) -> float:
    tried = _tried(result)
    return sum(record.outcome != "completed" for record in tried) / len(tried)


def _failures(before: CaseResult, after: CaseResult) -> str:
    """That a larger share of the rounds fails than before; else nothing."""
    shares = [_share_that_failed(one) for one in (before, after)]
    if shares[1] <= shares[0]:
        return ""
    of_before, of_after = (
        f"{share * len(_tried(one)):.0f} of {counted(len(_tried(one)), 'round')}"
        for share, one in zip(shares, (before, after), strict=True)
    )
    return f"; {of_after} failed after, {of_before} before"


def _mean(rounds: Rounds) -> float | None:
    return mean_of(rounds.values()).value if rounds else None


def _names(found: Sequence[Difference]) -> str:
    more = len(found) - MAX_NAMED
    names = [item.name for item in found[:MAX_NAMED]] + ([f"{more} more"] if more > 0 else [])
    return f"differs in {', '.join(names)}"
