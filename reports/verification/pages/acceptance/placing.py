"""Where a value of one machine stands among the medians of others. More is slower. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.verification import formulas


@dataclass(frozen=True, kw_only=True)
class Placed:
    value: float
    span: formulas.Interval | None
    others: tuple[float, ...]  # the median of each other machine that has such rounds

    @property
    def word(self) -> str:
        if self.span is None or not self.others:
            return "open"
        low, high = self.span
        return "slow" if low > max(self.others) else "fast" if high < min(self.others) else "within"

    @property
    def times_slowest(self) -> float | None:
        slowest = max(self.others, default=0.0)
        return self.value / slowest if slowest else None

    @property
    def added(self) -> float | None:
        """Return what it is more than the median of the others."""
        return self.value - formulas.median(self.others) if self.others else None


def placed(own: Sequence[float], others: Sequence[Sequence[float]]) -> Placed | None:
    """Return None without a value. Where one is 0 none has a logarithm, and the interval is their range."""
    if not own:
        return None
    span = formulas.interval(own) if min(own) > 0 else (min(own), max(own))
    return Placed(
        value=formulas.median(own),
        span=span if len(own) >= formulas.MIN_PROCESSES else None,
        others=tuple(formulas.median(values) for values in others if values),
    )
