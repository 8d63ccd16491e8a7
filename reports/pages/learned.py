"""How the cases of a series learned: rewards over iterations. Pure."""

from collections.abc import Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.learning_curves import CurvePoint
from reports.analysis.rows import CaseRow
from reports.display.charts.curves import curves, stride_of
from reports.display.charts.drawing import Point, Texts
from reports.display.figure import Figure, figure_of, source_of
from reports.display.html import Html, html_table, paragraph


def learning(series: Campaign) -> Figure | Html:
    """Mean return of finished episodes over iterations, a line for all cases that learn the same, bit for bit."""
    points = series.learning_curves
    if not points:
        return paragraph("No rank of this series reported a reward: training was too short for an episode to end.")
    names = _alike(points, series)
    stride = stride_of(1 + max(point.iteration for point in points))
    chart = curves(
        [
            Point(label=names[point.case_id], x=point.iteration, y=point.reward)
            for point in points
            if point.case_id in names and point.iteration % stride == 0
        ],
        Texts(
            title=f"{task_name(series.results[0].case.task)}: reward over iterations",
            note=f"Series {series.rows[0].series}.",
            source=source_of(series),
            x="Iteration",
            y="Mean return",
        ),
    )
    last = {point.case_id: point for point in points}
    return figure_of(
        series,
        chart,
        "learning",
        data=html_table(
            ["Case", "Last iteration", "Mean return"],
            ([point.case_id, str(point.iteration), f"{point.reward:.3g}"] for point in last.values()),
            label="Mean return at the end",
        ),
        caption="Mean return of finished episodes; a line is the median over the runs of a case. The axis need not"
        " start at zero.",
    )


def _alike(points: Sequence[CurvePoint], series: Campaign) -> dict[str, str]:
    """The first case of those that learn the same -> its name, which counts the others."""
    rewards: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        rewards.setdefault(point.case_id, []).append((point.iteration, point.reward))
    alike: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for case_id, of_case in rewards.items():
        alike.setdefault(tuple(of_case), []).append(case_id)
    rows = [row for row in series.rows if row.case_id in rewards]
    labels = {row.case_id: _case_label(row, rows) for row in rows}
    groups = [sorted(group, key=lambda case_id: (len(case_id), case_id)) for group in alike.values()]
    return {first: labels[first] + (f" and {len(others)} more" if others else "") for first, *others in groups}


def _case_label(row: CaseRow, rows: Sequence[CaseRow]) -> str:
    """What tells a case from the others, what matters first: a phone has no room for all of it."""
    curve = row.curve.replace(" environments a rank", " envs").replace(" environments", " envs")
    if len({other.topology for other in rows}) == 1:
        return curve
    return f"{row.topology} {curve}" if len({other.curve for other in rows}) > 1 else row.topology
