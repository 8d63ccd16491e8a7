"""What the pages of tasks say of starts besides figures.json, cold beside warm. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.start_ups import (
    PARTS,
    ColdAndWarm,
    cold_and_warm,
    compile_time_s,
    median_of_known,
    median_parts_s,
    start_ups,
    whole_of,
)
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.tasks.start_up import says_most
from suite.schema.record import CaseResult
from suite.statistics.start_up import StartUp


def start_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case, set and kind of work, set and series -> figures."""
    found: dict[str, Figures] = {}
    for one in version.scaling:
        for series in map(one.campaign.series, one.campaign.series_names):
            said = _of_series(series)
            found |= {f"{one.name}: {of}": figures for of, figures in said.items()}
    return found


def _of_series(series: Campaign) -> Mapping[str, Figures]:
    every = cold_and_warm(series.results)
    most = says_most(every)
    return {
        **{result.case.case_id: _of_case(result) for result in series.results if result.completed},
        **{f"{each.case.case_id}, cold and warm": _of_work(each) for each in every},
        **({series.results[0].case.series: {"said_of": most.case.case_id}} if most else {}),
    }


def _of_case(result: CaseResult) -> Figures:
    starts = start_ups(result)
    cold = starts.by_kind.get("cold", ())
    return {
        "warm_starts": len(starts.by_kind.get("warm", ())),
        "cold_starts": len(cold),
        "unknown_starts": len(starts.by_kind.get(None, ())),
        "unknown_start_s": starts.median_s(None),
        "kernels_compiled": _ends(starts.kernels_compiled),
        "warp_compile_time_s": compile_time_s(cold),
        "scene_s": median_of_known([start.phases_s.get("environment_creation") for start in starts.usual]),
        "first_iteration_s": median_of_known([start.first_iteration_s for start in starts.usual]),
    }


def _of_work(each: ColdAndWarm) -> Figures:
    longer_s = each.longer_by_s if each.has_both else {}
    return {
        **_of_starts("cold", each.cold),
        **_of_starts("warm", each.warm),
        **with_interval("ratio", each.ratio if each.has_both else None),
        "longer_by_s": each.whole_longer_by_s if each.has_both else None,
        "parts_longer_by_s": {part.replace(" ", "_"): longer_s[part] for part in PARTS if part in longer_s},
        "kernels_compiled": _ends(each.kernels_compiled),
        "warp_compile_time_s": compile_time_s(each.cold),
    }


def _of_starts(kind: str, starts: Sequence[StartUp]) -> Figures:
    parts_s = median_parts_s(starts) if starts else {}
    return {
        f"{kind}_starts": len(starts),
        **with_interval(f"{kind}_start_s", whole_of(starts) if starts else None),
        f"{kind}_parts_s": {part.replace(" ", "_"): time_s for part, time_s in parts_s.items()},
    }


def _ends(counts: Sequence[int]) -> list[int] | None:
    return [min(counts), max(counts)] if counts else None
