"""What charts of tasks show of a case besides figures.json: ranges, ideals, parts in seconds, ranks, rewards. Pure."""

from collections.abc import Mapping

from reports.analysis.analysed_set import Campaign
from reports.analysis.learning_curves import learning_curve
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import PARTS, Inside, parts_s
from reports.display.charts.points import throughput_points
from reports.display.topic import Figures
from reports.sets.version import Version
from suite.schema.record import CaseResult

_RATES: Mapping[str, str] = {  # kind of throughput -> name of its figures
    "step": "step_fps",
    "step and inference": "step_inference_fps",
    "total": "total_fps",
}


def chart_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of each case with a completed run."""
    found: dict[str, Figures] = {}
    for one in version.scaling:
        inside, results = one.campaign.inside, {result.case.case_id: result for result in one.campaign.results}
        ideals = _ideals(one.campaign)
        for row in one.campaign.rows:
            if results[row.case_id].completed:
                of_case = _of_case(results[row.case_id], row, inside[row.case_id])
                found[f"{one.name}: {row.case_id}"] = {**ideals.get(row.case_id, {}), **of_case}
    return found


def _ideals(campaign: Campaign) -> Mapping[str, Figures]:
    """Return case id -> the thin dashed line of each kind of throughput."""
    found: dict[str, dict[str, object]] = {}
    for name in campaign.series_names:
        for point in throughput_points(campaign.series(name)):
            found.setdefault(point["case_id"], {})[f"{_RATES[point['kind']]}_ideal"] = point["ideal"]
    return found


def _of_case(result: CaseResult, row: CaseRow, found: Inside) -> Figures:
    points, times_s = learning_curve(result, row), parts_s(row.iteration_time_s, found.shares)
    return {
        **{f"{_RATES[kind]}_range": [values.low, values.high] for kind, values in found.fps.items()},
        "parts_s": {name: times_s[part] for name, part in PARTS.items() if part in times_s},
        "ranks": [[ratio.median, ratio.low, ratio.high] for ratio in found.rank_ratios],
        "iterations_with_reward": [point.iteration for point in points],
        "rewards": [point.reward for point in points],
    }
