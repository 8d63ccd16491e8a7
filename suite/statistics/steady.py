"""Which iterations of a process are steady, by one stated rule instead of a fixed count. Pure.

The rule is MSER, the marginal standard error rule (White, "An effective truncation heuristic for bias reduction in
simulation output", Simulation 69(6), 1997): of all possible starts take the one whose rest has the smallest sum of
squared deviations from its mean, divided by the square of its length. Dropping a slow iteration shrinks the sum,
dropping a usual one shrinks the length. As usual the start is sought in the first half only, because the last few
values can be alike by chance. Three things are ours: the first iteration is never steady, since kernels are compiled
and memory is allocated in it; at least ``MIN_STEADY`` iterations are left where there are so many; and the rule sees
running medians of three (Tukey), because one slow iteration late in a round, as shared hosts have them, would outweigh
the whole warm-up.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MIN_STEADY: Final = 4  # fewer have no two halves to compare
SETTLED_WITHIN: Final = (
    0.05  # how much the halves of the steady part may differ; fresh processes differ by about as much
)


@dataclass(frozen=True, kw_only=True)
class SteadyWindow:
    """The steady iterations of a round, ``start`` to before ``stop``, the same for every rank and column."""

    start: int
    stop: int
    change: float | None  # from the earlier half to the later, relative; None for too few iterations

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def flag(self) -> str | None:
        """Why the round has shown no steady part; None when it has."""
        is_settled = self.change is not None and abs(self.change) <= SETTLED_WITHIN
        return None if is_settled else why_unsteady([self])

    def of[T](self, column: Sequence[T]) -> tuple[T, ...]:
        """The part of a column of samples that lies in the window; empty for a column that was never measured."""
        return tuple(column[self.start : self.stop])


def steady_window(times_s: Sequence[float]) -> SteadyWindow:
    """The steady part of one process, whose iterations took ``times_s``, shape (iterations,).

    It is empty for fewer than two iterations. Whether it deserves its name is said by ``flag``.
    """
    count = len(times_s)
    last_start = max(1, min(count // 2, count - MIN_STEADY))
    smooth_s = _smoothed(times_s[1:])
    start = min(range(1, last_start + 1), key=lambda start: _marginal_standard_error(smooth_s[start - 1 :]))
    return SteadyWindow(start=start, stop=max(start, count), change=_change(times_s[start:]))


def _smoothed(times_s: Sequence[float]) -> list[float]:
    """Running medians of three. The first stays, being warm-up perhaps; the last is replaced by its neighbour."""
    if len(times_s) < 3:  # noqa: PLR2004  (three)
        return list(times_s)
    inner = [statistics.median(times_s[index - 1 : index + 2]) for index in range(1, len(times_s) - 1)]
    return [times_s[0], *inner, inner[-1]]


def _marginal_standard_error(times_s: Sequence[float]) -> float:
    if not times_s:
        return 0.0
    # Relative to the first, so that equal times deviate by exactly nothing and the earliest start wins.
    relative = [time_s - times_s[0] for time_s in times_s]
    mean = statistics.fmean(relative)
    return sum((value - mean) ** 2 for value in relative) / len(relative) ** 2


def _change(steady_s: Sequence[float]) -> float | None:
    if len(steady_s) < MIN_STEADY:
        return None
    half = len(steady_s) // 2
    return statistics.median(steady_s[-half:]) / statistics.median(steady_s[:half]) - 1


def why_unsteady(windows: Sequence[SteadyWindow]) -> str:
    """Why rounds of one case have shown no steady part, none of which has; of numbers that differ the range."""
    lengths = " to ".join(dict.fromkeys(str(pick(window.length for window in windows)) for pick in (min, max)))
    changes = [window.change for window in windows if window.change is not None]
    if not changes:  # of all alike: a case says how many iterations a round has
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
