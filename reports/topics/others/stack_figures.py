"""What *Stacks* says besides figures.json: ratios of cases, parts of their iterations, and all cases together. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis.stack_parts import Side, StackPair, stack_pairs
from reports.analysis.time_split import PARTS
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.others.pairs_page import pairs_by_stacks


def stack_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case on another stack than the first one of its like.

    Two stacks -> what is said of all their cases.
    """
    of_cases = {
        f"{one.name}: {pair.case.case.case_id}": _figures(pair)
        for one in version.scaling
        for series in one.campaign.series_names
        for pair in stack_pairs(one.campaign.series(series))
    }
    return {
        **of_cases,
        **{f"{ours} beside {theirs}": _of_all(pairs) for (ours, theirs), pairs in pairs_by_stacks(version).items()},
    }


def _figures(pair: StackPair) -> Figures:
    return {
        "compared_with": pair.base.case.case_id,
        **with_interval("ratio", pair.ratio.over_base),
        "against_noise": pair.speed,
        "noise": pair.noise,
        **with_interval("slower_by", pair.ratio.slower_by),
        **_side(pair.case),
        "of_compared": _side(pair.base),
        "longer_s": {name: pair.longer_s[part] for name, part in PARTS.items() if part in pair.longer_s},
        "all_longer_s": sum(pair.longer_s.values()) if pair.longer_s else None,
    }


def _side(side: Side) -> Figures:
    return {
        "parts_s": {name: side.parts_s[part] for name, part in PARTS.items() if part in side.parts_s},
        "gpu_memory_gb": side.gpu_memory_gb,
        "reward": side.reward,
    }


def _of_all(pairs: Sequence[StackPair]) -> Figures:
    slower_by = [pair.ratio.slower_by.value for pair in pairs if pair.ratio.slower_by]
    slower = sum(pair.speed == "slower" for pair in pairs)
    return {"compared": len(pairs), "slower": slower, "slower_by_range": [min(slower_by), max(slower_by)]}
