"""Decide which iterations of a process are steady, by a rule instead of a fixed count. Pure.

The rule is MSER, the marginal standard error rule (White, "An effective truncation heuristic for bias reduction in
simulation output", Simulation 69(6), 1997): of all possible starts it takes the one whose rest has the smallest sum of
squared deviations from its mean, divided by the square of its length. Dropping a slow iteration shrinks the sum;
dropping a usual one shrinks the length. As usual only the first half is searched, because the last few values can be
alike by chance. labscale adds three things. The first iteration is never steady, because it compiles kernels and
allocates memory. At least ``MIN_STEADY`` iterations are left if there are that many. The rule sees running medians of
three (Tukey), because one slow iteration late in a round, as on shared hosts, would outweigh the whole warm-up.

A start at the limit of the search is no answer: a later one might have been better. Such a round has not settled.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MIN_STEADY: Final = 4  # fewer do not have two halves to compare
AT_LIMIT: Final = "the warm-up may be longer than the half of the iterations that is searched for its end"
SETTLED_WITHIN: Final = 0.05  # allowed difference of the steady part's halves; fresh processes differ by as much


@dataclass(frozen=True, kw_only=True)
class SteadyWindow:
    """The steady iterations of a round, from ``start`` to before ``stop``; the same for every rank and column."""

    start: int
    stop: int
    change: float | None  # from the earlier half to the later, relative; None for too few iterations
    is_at_limit: bool  # whether the search for the start ended at the last place it may take

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def flag(self) -> str | None:
        """Why the round has no steady part; None if it has one."""
        return None if self.is_level and not self.is_at_limit else why_unsteady([self])

    @property
    def is_level(self) -> bool:
        """Whether the halves are alike."""
        return self.change is not None and abs(self.change) <= SETTLED_WITHIN

    def of[T](self, column: Sequence[T]) -> tuple[T, ...]:
        """The samples of a column within the window; () for a column that was never measured."""
        return tuple(column[self.start : self.stop])


def steady_window(times_s: Sequence[float]) -> SteadyWindow:
    """Return the steady part of one process, whose iterations took ``times_s`` [s], shape (iterations,).

    It is empty for fewer than two iterations. Its ``flag`` tells whether it really is steady.
    """
    count = len(times_s)
    last_start = max(1, min(count // 2, count - MIN_STEADY))
    smooth_s = _smoothed(times_s[1:])
    start = min(range(1, last_start + 1), key=lambda start: _marginal_standard_error(smooth_s[start - 1 :]))
    return SteadyWindow(
        start=start,
        stop=max(start, count),
        change=_change(times_s[start:]),
        is_at_limit=start == last_start > 1,  # one place alone is no search
    )


def _smoothed(times_s: Sequence[float]) -> list[float]:
    """Running medians of three. The first value stays, as it may be warm-up; the last is that of its neighbour."""
    if len(times_s) < 3:  # noqa: PLR2004  (three)
        return list(times_s)
    inner = [statistics.median(times_s[index - 1 : index + 2]) for index in range(1, len(times_s) - 1)]
    return [times_s[0], *inner, inner[-1]]


def _marginal_standard_error(times_s: Sequence[float]) -> float:
    if not times_s:
        return 0.0
    # Relative to the first, so that equal times deviate by exactly 0 and the earliest start wins.
    relative = [time_s - times_s[0] for time_s in times_s]
    mean = statistics.fmean(relative)
    return sum((value - mean) ** 2 for value in relative) / len(relative) ** 2


def _change(steady_s: Sequence[float]) -> float | None:
    if len(steady_s) < MIN_STEADY:
        return None
    half = len(steady_s) // 2
    return statistics.median(steady_s[-half:]) / statistics.median(steady_s[:half]) - 1


def why_unsteady(windows: Sequence[SteadyWindow]) -> str:
    """Why these rounds of one case have no steady part, in words; numbers that differ are given as a range."""
    uneven = [window for window in windows if not window.is_level]
    if not uneven:
        return f"not steady: {AT_LIMIT}; more iterations are needed"
    if len(uneven) < len(windows):
        return f"{why_unsteady(uneven)}; where the halves are alike, {AT_LIMIT}"
    lengths = " to ".join(dict.fromkeys(str(pick(window.length for window in windows)) for pick in (min, max)))
    changes = [window.change for window in windows if window.change is not None]
    if not changes:  # the same in all rounds: the case sets the number of iterations
        after = "iteration after the first is" if lengths == "1" else "iterations after the first are"
        return f"{lengths} {after} too few to tell a steady part; {MIN_STEADY} are needed"
    return (
        f"not steady: the later half of the last {lengths} iterations takes {_range(changes)} than the earlier, "
        f"allowed are {SETTLED_WITHIN:.0%}; more iterations are needed"
    )


def _range(changes: Sequence[float]) -> str:
    low, high = min(changes), max(changes)
    if low < 0 < high:
        return f"{-low:.1%} less to {high:.1%} longer"
    amounts = dict.fromkeys(f"{amount:.1%}" for amount in sorted((abs(low), abs(high))))
    return f"{' to '.join(amounts)} {'longer' if high > 0 else 'less'}"
