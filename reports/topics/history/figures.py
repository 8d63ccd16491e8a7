"""What *What changed since the last version?* says besides figures.json: changes with their verdicts. Pure."""

from collections import Counter
from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.history.conditions import compared_results, runs_of
from reports.topics.history.matched_sets import compared_sets, matched_sets
from reports.topics.history.over_versions import (
    Change,
    Measured,
    again,
    changes_since_last,
    compared,
    measured,
)


def history_figures(version: Version) -> Mapping[str, Figures]:
    """Return what changed since when -> figures, and ``all`` of these together; nothing without an older version."""
    if not (version.older and version.scaling):
        return {}
    found, changed = measured([*reversed(version.older), version]), changes_since_last(version)
    ratios = [each.frames_ratio for each in changed]
    everything = {
        "configurations": len({each.work for each in found}),
        "configurations_in_several_versions": len(again(found)),
        "configurations_in_one_version": len({each.work for each in found}) - len(again(found)),
        "configurations_compared": len(compared(changed)),
        "comparisons": len(changed),
        "verdicts": dict(sorted(Counter(each.verdict for each in changed).items())),
        "frames_ratio": [min(ratios), max(ratios)] if ratios else None,
    }
    return {
        "all": everything,
        **{f"{_place(each.now)} since {each.before.version}, {_place(each.before)}": _of(each) for each in changed},
        **{f"runs of {one.name}": _runs(one) for one in (version, version.older[0])},
        **_case_by_case(version),
    }


def _runs(version: Version) -> Figures:
    found = runs_of(compared_results(version))
    return {
        "runs": found.number,
        "in_turns": found.in_turns,
        "runs_of_a_case": [*found.of_a_case],
        "commits": len(found.commits),
    }


def _place(each: Measured) -> str:
    return f"{each.set_name}: {each.point.case.case_id}"


def _of(change: Change) -> Figures:
    return {**with_interval("speedup_change", change.value), "verdict": change.verdict}


def _case_by_case(version: Version) -> Mapping[str, Figures]:
    before = version.older[0].name
    return {
        f"{new.name}: {case.case_id} since {before}": {
            "verdict": case.word,
            **with_interval("time_change", case.change),
        }
        for old, new in matched_sets(version)
        if (found := compared_sets(old, new))
        for case in found.cases
    }
