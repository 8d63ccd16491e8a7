"""What charts of tasks show of the runs of a case besides figures.json: ranges over runs, ranks, and rewards. Pure."""

from collections.abc import Mapping

from reports.analysis.learning_curves import learning_curve
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import Inside
from reports.display.topic import Figures
from reports.sets.version import Version
from suite.schema.record import CaseResult

_RANGES: Mapping[str, str] = {  # kind of throughput -> name of the figure
    "step": "step_fps_range",
    "step and inference": "step_inference_fps_range",
    "total": "total_fps_range",
}


def chart_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of each case with a completed run."""
    found: dict[str, Figures] = {}
    for one in version.scaling:
        inside, results = one.campaign.inside, {result.case.case_id: result for result in one.campaign.results}
        for row in one.campaign.rows:
            if results[row.case_id].completed:
                found[f"{one.name}: {row.case_id}"] = _of_case(results[row.case_id], row, inside[row.case_id])
    return found


def _of_case(result: CaseResult, row: CaseRow, found: Inside) -> Figures:
    points = learning_curve(result, row)
    return {
        **{name: [found.fps[kind].low, found.fps[kind].high] for kind, name in _RANGES.items() if kind in found.fps},  # type: ignore[index]
        "ranks": [[ratio.median, ratio.low, ratio.high] for ratio in found.rank_ratios],
        "iterations_with_reward": [point.iteration for point in points],
        "rewards": [point.reward for point in points],
    }
