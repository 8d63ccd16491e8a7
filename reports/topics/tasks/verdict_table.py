"""What the curves say, as tables: verdict, serial fractions, law and one prediction of every curve. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.scaling.prediction import predict
from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.scaling.scaling_laws import SUPERLINEAR_EFFICIENCY, Law, NoFit, karp_flatt
from reports.analysis.scaling.verdicts import verdict
from reports.display.html import MISSING, Html, count, html_table, paragraph, percent, rounds_text
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import MIN_FREEDOM
from suite.statistics.speed import SCALES_EFFICIENCY

LAW_NAMES: Final[Mapping[Law, str]] = {"amdahl": "Amdahl", "gustafson": "Gustafson", "usl": "universal scalability law"}


def rule() -> Html:
    """What the words mean, with their limits."""
    return paragraph(
        f"The verdict says on which side of {SCALES_EFFICIENCY:.0%} the whole interval of the efficiency at the largest"
        " number of ranks lies; within noise: on both. Above ideal, which mostly means a mistake: at any number of"
        f" ranks all of it is above {SUPERLINEAR_EFFICIENCY:.0%}. Too few runs: an interval needs {MIN_FREEDOM}"
        " degrees of freedom."
    )


def verdicts(results: Sequence[CaseResult], *, label: str = "Verdicts") -> Html:
    """One row for each curve with more than one number of ranks; a sentence when there is none.

    ``results``: with the repeats of the baselines, where there are any.
    """
    groups = curves(results)
    if not groups:
        return paragraph("No case ran with more than one number of ranks, so nothing can be said of scaling.")
    judged = [(group, verdict(group)) for group in groups]
    return html_table(
        ["Curve", "Verdict", "Why", "Efficiency", "Rounds"],
        (
            [
                _name(group),
                said.text,
                said.reason,
                MISSING if said.efficiency is None else f"{_percent(said.efficiency)} at {said.world_size}",
                _rounds(group),
            ]
            for group, said in judged
        ),
        label=label,
        num_text_columns=3,
        text_headings=("Rounds",),
    )


def serial_fractions(results: Sequence[CaseResult], *, label: str = "Serial fractions") -> list[Html]:
    """Karp and Flatt's metric at every number of ranks of the strong curves; nothing where there is none."""
    strong = [group for group in curves(results) if group.scaling == "strong"]
    if not strong:
        return []
    rows = [
        [
            _name(group),
            str(point.world_size),
            f"none: {point.reason}" if point.serial_fraction is None else _percent(point.serial_fraction),
        ]
        for group in strong
        for point in karp_flatt(group)
    ]
    return [
        html_table(["Curve", "Ranks", "Serial fraction"], rows, label=label),
        paragraph(
            "The serial fraction of an iteration that would explain each number of ranks by itself, by Karp and Flatt."
            " Where it rises with the ranks, what is lost is overhead that grows with them and not serial work; above"
            " 100 % they are slower than the fewest."
        ),
    ]


def predictions(results: Sequence[CaseResult], *, label: str = "Predictions, not measurements") -> Html:
    """Total FPS at twice the largest number of ranks by the law of the curve's kind: one row for each curve."""
    return html_table(
        ["Curve", "Law", "Serial fraction", "Predicted for ranks", "Predicted total FPS", "Off by at the largest"],
        (_prediction_row(group) for group in curves(results)),
        label=label,
        num_text_columns=2,
    )


def curves(results: Sequence[CaseResult]) -> list[ScalingGroup]:
    """Return what has more than one number of ranks."""
    return [group for group in scaling_groups(results) if len(group.points) > 1]


def _name(group: ScalingGroup) -> str:
    return f"{group.series}: {group.curve}"


def _prediction_row(group: ScalingGroup) -> list[str]:
    law: Law = "amdahl" if group.scaling == "strong" else "gustafson"
    found = predict(law, group)
    if isinstance(found, NoFit):
        return [_name(group), f"none: {found.reason}", MISSING, MISSING, MISSING, MISSING]
    return [
        _name(group),
        LAW_NAMES[law],
        _percent(found.fitted.parameters["serial_fraction"]),
        str(found.world_size),
        count(found.total_fps.value),
        f"{100 * found.held_out.relative_error:+.1f} % at {found.held_out.world_size}",
    ]


def _rounds(group: ScalingGroup) -> str:
    return rounds_text([len(point.times_s) for point in group.points])


def _percent(value: Estimate) -> str:
    if value.interval is None:
        return percent(value.value)
    low, high = value.interval
    return f"{percent(value.value)} ({percent(low)} to {percent(high)})"
