"""How a figure with its interval is written: ``{"ratio": 1.5, "ratio_interval": [1.4, 1.6]}``. Pure."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.finding import Json


def of_median(name: str, values: Sequence[float]) -> Json:
    """Return the median of one value of each process; None without a value."""
    return of_pair(name, (formulas.median(values), formulas.interval(values)) if values else None)


def of_rate(name: str, amount: float, times_s: Sequence[float]) -> Json:
    """Return an amount over the median time, with the interval of the latter turned over."""
    if not times_s:
        return of_pair(name, None)
    span_s = formulas.interval(times_s)
    span = span_s and (amount / span_s[1], amount / span_s[0])
    return of_pair(name, (amount / formulas.median(times_s), span))


def of_ratio(name: str, over: Sequence[float], under: Sequence[float]) -> Json:
    """Return the ratio of two medians; None unless both have a value."""
    return of_pair(name, formulas.ratio(over, under, 1) if over and under else None)


def of_pair(name: str, found: tuple[float, formulas.Interval | None] | None) -> Json:
    value, span = found or (None, None)
    return {name: value, f"{name}_interval": span and [*span]}
