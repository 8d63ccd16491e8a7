"""What *Stacks* says besides figures.json: ratios of cases. Pure."""

from collections.abc import Mapping

from reports.analysis.stack_parts import StackPair, stack_pairs
from reports.display.topic import Figures
from reports.sets.version import Version


def stack_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case on another stack than the first one of its like."""
    return {
        f"{one.name}: {pair.case.case.case_id}": _figures(pair)
        for one in version.scaling
        for series in one.campaign.series_names
        for pair in stack_pairs(one.campaign.series(series))
    }


def _figures(pair: StackPair) -> Figures:
    ratio = pair.ratio.over_base
    return {
        "compared_with": pair.base.case.case_id,
        "ratio": ratio and ratio.value,
        "ratio_interval": ratio and ratio.interval and [*ratio.interval],
        "against_noise": pair.speed,
    }
