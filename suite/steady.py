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
    flag: str | None  # why the round has shown no steady part; None when it has

    @property
    def length(self) -> int:
        return self.stop - self.start

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
    return SteadyWindow(start=start, stop=max(start, count), flag=_flag(times_s[start:]))


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


def _flag(steady_s: Sequence[float]) -> str | None:
    if len(steady_s) < MIN_STEADY:
        return f"{len(steady_s)} iterations after the first are too few to tell a steady part; {MIN_STEADY} are needed"
    half = len(steady_s) // 2
    change = statistics.median(steady_s[-half:]) / statistics.median(steady_s[:half]) - 1
    if abs(change) > SETTLED_WITHIN:
        return (
            f"not steady: the later half of its last {len(steady_s)} iterations takes {abs(change):.1%} "
            f"{'longer' if change > 0 else 'less'} than the earlier, allowed are {SETTLED_WITHIN:.0%}; "
            "more iterations are needed"
        )
    return None
