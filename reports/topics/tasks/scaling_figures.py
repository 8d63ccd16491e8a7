"""What curves over numbers of ranks say besides figures.json: laws, fractions, predictions. Pure."""

from collections.abc import Iterator, Mapping

from reports.analysis.scaling.prediction import Prediction
from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.scaling.scaling_laws import Fit, KarpFlatt, NoFit, fit, karp_flatt
from reports.analysis.scaling.verdicts import Verdict, limiting_law, verdict
from reports.display.topic import Figures, with_interval
from reports.sets.version import ResultSet, Version
from reports.topics.tasks.answer_figures import answer_figures
from reports.topics.tasks.set_answer import left_of_ideal, number_of_verdicts, scaling_part
from reports.topics.tasks.verdict_table import curves, law_of, prediction_of


def scaling_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case that a curve begins with -> figures; set -> figures of all its curves; what is answered."""
    return {**{of: figures for one in version.scaling for of, figures in _of_set(one)}, **answer_figures(version)}


def _of_set(one: ResultSet) -> Iterator[tuple[str, Figures]]:
    campaign = scaling_part(one.campaign)
    for group in curves(campaign.with_twins):
        yield f"{one.name}: {group.baseline.case_id}", _figures(group)
    most, left = left_of_ideal(campaign)
    if left:
        words = number_of_verdicts(scaling_groups(campaign.with_twins))
        ends = {kind: [min(found), max(found)] for kind, found in sorted(left.items())}
        yield (
            f"{one.name}: all curves",
            {"most_ranks": most, "efficiency": ends, "verdicts": dict(sorted(words.items()))},
        )


def _figures(group: ScalingGroup) -> Figures:
    said, twin = verdict(group), group.from_twin
    return {
        "verdict_ranks": said.world_size,
        "with_repeat": None if twin is None else _verdict(verdict(twin)),
        "limited_by": _limit(limiting_law(group)) if said.word == "limited" else None,
        "law": _law(group),
        "serial_fractions": (
            {str(point.world_size): _fraction(point) for point in karp_flatt(group)}
            if group.scaling == "strong"
            else None
        ),
    }


def _verdict(said: Verdict) -> Figures:
    return {"verdict": said.word, "ranks": said.world_size, **with_interval("efficiency", said.efficiency)}


def _limit(found: Fit | NoFit) -> Figures | None:
    """The coefficients of the law that says what limits; as much as is said of one that describes the points badly."""
    if isinstance(found, NoFit):
        return None
    names = ("kappa",) if found.law == "usl" else ("serial_fraction",)
    said = {name: value for each in names for name, value in with_interval(each, found.parameters[each]).items()}
    peak = found.parameters["peak_world_size"].value if found.law == "usl" else None
    return {"law": found.law, "worst_residual": found.worst_residual, "peak_ranks": peak, **said}


def _law(group: ScalingGroup) -> Figures | None:
    """The law of the curve's kind of scaling, and what it predicts; None where the points cannot support it."""
    fitted, found = fit(law_of(group), group), prediction_of(group)
    if isinstance(fitted, NoFit):
        return None
    return {
        "law": fitted.law,
        "worst_residual": fitted.worst_residual,
        **with_interval("serial_fraction", fitted.parameters["serial_fraction"]),
        "prediction": _prediction(found) if isinstance(found, Prediction) else None,
    }


def _prediction(found: Prediction) -> Figures:
    return {
        "ranks": found.world_size,
        "frames_per_s": found.total_fps.value,
        "held_out_ranks": found.held_out.world_size,
        "held_out_error": found.held_out.relative_error,
    }


def _fraction(point: KarpFlatt) -> Figures:
    return with_interval("serial_fraction", point.serial_fraction)
