"""Decide how many rounds a case gets, and in which order rounds run. Pure.

A round is a fresh process. What counts is the precision of the figure that a reader sees: the ratio to the baseline of
the case's series by ``suite.statistics.series_model``, or the time of the baseline itself where nothing else ran.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.files.wording import counted
from suite.schema.record import Case, RunRecord
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import completed_times_s
from suite.statistics.set_model import SetModel

TARGET_PRECISION: Final = 0.04
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
    records: Sequence[RunRecord],
    rule: Rule,
    *,
    ratios: Sequence[tuple[Case, Case]] = (),
    of_set: Sequence[RunRecord] = (),
    elapsed_s: float = 0.0,
) -> Decision:
    """Decide whether one case goes on, from all its finished rounds, ``elapsed_s`` after the command started.

    ``ratios``: those that it has part in (``suite.statistics.twins.ratios_of``); the least certain one counts.
    ``of_set``: the finished rounds of its series. Without a ratio, the case's own time counts.

    Raises ValueError if a completed round has no number, as ``suite.statistics.reduce.round_time_s`` does.
    """
    if len(records) < rule.rounds:
        return Decision(go_on=True, reason=f"{len(records)} of {counted(rule.rounds, 'round')}")
    if rule.precision is None:
        return Decision(go_on=False, reason="as many rounds as were asked for")
    times_s = completed_times_s(records)
    model = SetModel(of_set)
    to_baseline = [ratio for case, baseline in ratios if times_s and (ratio := model.ratio(case, baseline))]
    figures = to_baseline or ([mean_of(times_s)] if times_s else [])
    widths = [width for figure in figures if (width := relative_half_width(figure)) is not None]
    width = max(widths) if widths and len(widths) == len(figures) else None
    what = "the ratio to the baseline" if to_baseline else "the time"
    if width is None:
        reached = f"no interval of {what} from {counted(len(times_s), 'round')} (too few runs)"
    else:
        reached = f"{what} is known to {width:.1%} after {counted(len(times_s), 'round')}"
    reached += f", {100 * rule.precision:g} % is the target"
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


def relative_half_width(figure: Estimate) -> float | None:
    """Half the interval, divided by the figure; None without an interval."""
    return None if figure.interval is None else (figure.interval[1] - figure.interval[0]) / 2 / figure.value


def is_cut_off(ended_because: str | None) -> bool:
    return (ended_because or "").startswith(CUT_OFF)


def rotated[T](items: Sequence[T], round_index: int) -> list[T]:
    """The order of one round. Each starts one item later than the last, so that no case always runs first or last."""
    start = round_index % len(items) if items else 0
    return [*items[start:], *items[:start]]
