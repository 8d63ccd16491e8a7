"""Decide how many rounds a case gets, and in which order rounds run. Pure.

A round is a fresh process. Intervals are those of ``suite.statistics.intervals``. What counts is the precision of the
figure that a reader sees: the ratio to the baseline of the case's series, or the time of the baseline itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.files.wording import counted
from suite.schema.record import RunRecord
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, median_of, ratio_of
from suite.statistics.reduce import round_time_s

TARGET_PRECISION: Final = 0.01
MAX_ROUNDS: Final = 12
CUT_OFF: Final = "the campaign was cut off"  # starts the reason of a case that `nox -s store` ended, not its rule


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a case has enough rounds: after ``rounds``, or later at a precision or a limit."""

    rounds: int  # always run
    precision: float | None = None  # relative half-width of the interval of the figure; None: ``rounds`` and no more
    max_rounds: int = MAX_ROUNDS  # of one case; unused without a precision
    budget_s: float | None = None  # wall time of one command, after which only the first ``rounds`` still run

    @property
    def most_rounds(self) -> int:
        return self.rounds if self.precision is None else max(self.rounds, self.max_rounds)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether a case goes on, and why."""

    go_on: bool
    reason: str


def decide(
    records: Sequence[RunRecord], rule: Rule, *, baseline: Sequence[RunRecord] = (), elapsed_s: float = 0.0
) -> Decision:
    """Decide whether one case goes on, from all its finished rounds, ``elapsed_s`` after the command started.

    ``baseline``: the finished rounds of the case that it is compared with (``suite.statistics.aa_noise.baseline_of``).
    If none of them completed, there is no ratio, and the case's own time counts.

    Raises ValueError if a completed round has no number, as ``suite.statistics.reduce.round_time_s`` does.
    """
    if len(records) < rule.rounds:
        return Decision(go_on=True, reason=f"{len(records)} of {counted(rule.rounds, 'round')}")
    if rule.precision is None:
        return Decision(go_on=False, reason="as many rounds as were asked for")
    times_s, base_s = completed_times_s(records), completed_times_s(baseline)
    found = _figure(times_s, base_s)
    width = None if found is None else relative_half_width(found)
    reached = f"{_reached(width, times_s, base_s)}, {100 * rule.precision:g} % is the target"
    if width is not None and width <= rule.precision:
        return Decision(go_on=False, reason=f"precise enough: {reached}")
    if spent := _spent(len(records), rule, completed=len(times_s), elapsed_s=elapsed_s):
        return Decision(go_on=False, reason=f"{spent}: {reached}")
    return Decision(go_on=True, reason=reached)


def _spent(rounds: int, rule: Rule, *, completed: int, elapsed_s: float) -> str | None:
    """Why the case ends although the target is not reached; None if it goes on."""
    if not completed:
        return f"none of {counted(rounds, 'round')} completed"
    if rounds >= rule.most_rounds:
        return f"the budget of {counted(rule.most_rounds, 'round')} is spent"
    if rule.budget_s is not None and elapsed_s >= rule.budget_s:
        return f"the budget of {counted(rule.budget_s / 60, 'minute')} is spent"
    return None


def completed_times_s(records: Sequence[RunRecord]) -> list[float]:
    """Seconds per iteration of every completed round, in the order of ``records``."""
    return [round_time_s(record) for record in records if record.counts]


def relative_half_width(found: Estimate) -> float | None:
    """Half the interval, divided by the figure; None without an interval."""
    return None if found.interval is None else (found.interval[1] - found.interval[0]) / 2 / found.value


def _figure(times_s: Sequence[float], base_s: Sequence[float]) -> Estimate | None:
    if not times_s:
        return None
    return ratio_of(base_s, times_s) if base_s else median_of(times_s)


def rotated[T](items: Sequence[T], round_index: int) -> list[T]:
    """The order of one round. Each starts one item later than the last, so that no case always runs first or last."""
    start = round_index % len(items) if items else 0
    return [*items[start:], *items[:start]]


def _reached(width: float | None, times_s: Sequence[float], base_s: Sequence[float]) -> str:
    what = "the ratio to the baseline" if base_s else "the median"
    rounds = counted(len(times_s), "round")
    if base_s:
        rounds += f" beside {len(base_s)} of the baseline"
    if width is None:
        return f"no interval of {what} from {rounds} ({MIN_ROUNDS_FOR_INTERVAL} are needed)"
    return f"{what} is known to {width:.1%} after {rounds}"
