"""An estimate as the figures of a page have it: ``{"ratio": 1.5, "ratio_interval": [1.4, 1.6]}``. Pure."""

from reports.display.topic import Figures
from suite.statistics.intervals import Estimate


def estimate_figures(name: str, found: Estimate | None) -> Figures:
    """Return the value and its interval; None for what is not known."""
    return {name: found and found.value, f"{name}_interval": found and found.interval and [*found.interval]}
