"""*Every curve*: what was measured, the answers in a table, a chart for each series, and verdicts in words."""

from collections import Counter
from collections.abc import Callable, Mapping

from reports.analysis.analysed_set import Campaign, has_one_size
from reports.display import all_curves as at_a_glance
from reports.display import division
from reports.display.charts.scaling import efficiency
from reports.display.charts.sweep import environments
from reports.display.contributors import byline
from reports.display.html import (
    Displayed,
    Html,
    heading,
    link,
    paragraph,
    side_by_side,
    together,
)
from reports.display.per_set import under_titles
from reports.display.series_tables import series_title
from reports.sets.version import ResultSet, Version
from reports.topics.tasks import verdict_table
from reports.topics.tasks.set_answer import address_of, scaling_part, set_answer
from reports.topics.tasks.start_up import start_up_answer
from suite.files.wording import counted
from suite.schema.record import Outcome


def opening(version: Version) -> Html:
    """How many cases of what, on what, and what became of them; of each of several sets below its own title."""
    if len(version.scaling) == 1:
        return paragraph(_measured(version.scaling[0], is_named=version.must_name_sets))
    return paragraph(_all_measured(version))


def _all_measured(version: Version) -> str:
    found = version.totals
    environments = [place.environment for one in version.sets for place in one.campaign.places]
    names = {name for one in environments for name in ({gpu.name for gpu in one.gpus} or {one.cpu_model or "unknown"})}
    counts = f"{counted(found.sets, 'set')}, {counted(found.cases, 'case')}, {counted(found.runs, 'completed run')}"
    compared = "A set is one campaign; frames per second are compared within a set, not between two."
    shown = f"{len(version.scaling)} of {counted(found.sets, 'set')} have speeds to compare, and stand here."
    return f"{counts}, on {' and '.join(sorted(names))}. {shown} {compared}"


def _measured(one: ResultSet, *, is_named: bool) -> str:
    name, campaign = f"{one.title}: " if is_named else "", one.campaign
    cases = counted(sum(bool(row.rounds_completed) for row in campaign.rows), "case")
    return f"{name}{cases} in {len(campaign.series_names)} series on {campaign.where}: {_rounds(campaign)}."


def _rounds(campaign: Campaign) -> str:
    """Outcomes of the cases, and apart from them those of repeat measurements."""
    completed = counted(sum(row.rounds_completed for row in campaign.rows), "round")
    of_cases = Counter(failure.outcome for row in campaign.rows for failure in row.failures)
    beside = Counter(failure.outcome for failure in campaign.failures) - of_cases
    said = ", ".join([f"{completed} completed", *_by_outcome(of_cases)])
    return said + (f"; also, in repeat measurements, {', '.join(_by_outcome(beside))}" if beside else "")


def _by_outcome(failed: Mapping[Outcome, int]) -> list[str]:
    return [f"{number} {name}" for name, number in sorted(failed.items())]


def answers(version: Version) -> Html:
    """One row a curve; of several sets the curves alone, and ``set_by_set`` has the rest."""
    return at_a_glance.curves(version) if len(version.scaling) > 1 else _every_answer(version)


def set_by_set(version: Version) -> Html:
    """What each of several sets answers, a section; nothing where there is one."""
    if len(version.scaling) < 2:  # noqa: PLR2004 - several
        return together(())
    return together([heading("Set by set", depth=2), _every_answer(version)])


def _every_answer(version: Version) -> Html:
    """Frames per second at every number of ranks, efficiency at the largest, verdict; or what a set is about."""

    def shown(one: ResultSet) -> Html:
        where = [paragraph(_measured(one, is_named=False))] if len(version.scaling) > 1 else []
        return together([byline(one.contributor), *where, set_answer(one)])

    depth = 3 if len(version.scaling) > 1 else 2
    return under_titles(version.scaling, shown, are_named=version.must_name_sets, depth=depth)


def charts(version: Version) -> Html:
    """Scaling efficiency of every series that trains, side by side on a wide screen."""
    depth = 4 if version.must_name_sets else 3
    return _by_set_that_scales(
        version,
        lambda one: side_by_side(_chart(series, depth) for series in _drawn(one.campaign)),
        is_shown=lambda one: bool(_drawn(one.campaign)),
    )


def _drawn(campaign: Campaign) -> list[Campaign]:
    """The series that vary anything: of a series on one number of ranks, efficiency is one point at 100 %."""
    every = [campaign.series(name) for name in campaign.series_names]
    return [one for one in every if one.is_training and not (one.kind == "scaling" and has_one_size([one]))]


def verdicts(version: Version) -> Html:
    return _by_set_that_scales(
        version,
        lambda one: verdict_table.verdicts(
            scaling_part(one.campaign).with_twins, label=f"Verdicts {one.title}".strip()
        ),
        is_shown=_has_curves,
    )


def predictions(version: Version) -> Html:
    return _by_set_that_scales(
        version,
        lambda one: verdict_table.predictions(
            scaling_part(one.campaign).results, label=f"Predictions {one.title}, not measurements"
        ),
        is_shown=_has_curves,
    )


def _has_curves(one: ResultSet) -> bool:
    return bool(verdict_table.curves(scaling_part(one.campaign).results))


def _by_set_that_scales(
    version: Version,
    show: Callable[[ResultSet], Displayed],
    *,
    is_shown: Callable[[ResultSet], bool],
) -> Html:
    """Without the sets that compare nodes or stacks alone."""
    sets = [
        one
        for one in version.scaling
        if not (one.campaign.pairs_without_scaling or one.campaign.compares_stacks_alone) and is_shown(one)
    ]
    if version.scaling and not sets:
        return paragraph("No case has more ranks than the case it is compared with, so nothing is known of scaling.")
    return under_titles(sets, show, are_named=version.must_name_sets)


def _chart(series: Campaign, depth: int) -> Displayed:
    name = series.rows[0].series
    title = f"{name}: {series_title(series.results[0].case, series.kind)}"
    chart = division.first_chart(series) if series.varies_settings else _plain_chart(series)
    return together([heading(link(title, address_of(series)), depth=depth), chart])


def _plain_chart(series: Campaign) -> Displayed:
    if series.kind == "start_up":
        return paragraph(start_up_answer(series.results, where=series.where))
    return environments(series, is_small=True) if series.is_sweep else efficiency(series, is_small=True)
