"""What one set answers: frames per second of every curve, what is left of ideal, and what it is about besides."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import is_emulated
from reports.analysis.pairs_of_cases import CasePair
from reports.analysis.rows import CaseRow
from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.scaling.verdicts import verdict
from reports.display import division, pair_tables
from reports.display.addresses import address_of_series
from reports.display.charts.points import curves_of, of_scaling
from reports.display.html import (
    MISSING,
    Cell,
    Html,
    count,
    html_table,
    interval_of,
    link,
    paragraph,
    percent,
    percent_interval,
    rounds_text,
    seconds,
    together,
)
from reports.display.pair_tables import stacks_of_set
from reports.display.series_tables import series_title
from reports.sets.version import ResultSet
from suite.files.wording import counted
from suite.schema.record import Scaling

JUDGED: Final = ("Efficiency", "Interval", "Rounds", "Verdict")


def set_answer(one: ResultSet) -> Html:
    """Frames per second by number of ranks, what is left of ideal, and verdicts; or what else the set is about."""
    if pairs := one.campaign.pairs_without_scaling:
        return _cost_of_nodes(one, pairs)
    if one.campaign.compares_stacks_alone:
        return stacks_of_set(one)
    campaign = scaling_part(one.campaign)
    if not campaign.results:
        parts = [_without_scaling(one.campaign.series(name), one.title) for name in one.campaign.series_names]
        return together([*parts, _controls(one)])
    sizes = sorted({row.world_size for row in campaign.rows if row.rounds_completed})
    unit = "GPU" if all(row.device == "cuda" for row in campaign.rows) else "rank"
    scales = len(sizes) != 1
    groups = {(group.series, group.curve): group for group in scaling_groups(campaign.with_twins)}
    rows: list[list[Cell]] = [
        [
            link(f"{series}: {curve}", address_of(campaign.series(series))),
            *(_fps(campaign.rows, series, curve, size) for size in sizes),
            *(_judged(campaign.rows, groups.get((series, curve)), series, curve) if scales else []),
        ]
        for series in campaign.series_names
        for curve in curves_of(_tried(of_scaling(campaign.series(series).rows)))
    ]
    headings = ["Series", *(counted(size, unit) for size in sizes), *(JUDGED if scales else ())]
    in_words = paragraph(_in_words(campaign, list(groups.values()), unit))
    left = ", and what is left of ideal at the most" if scales else ""
    explanation = f"Frames per second, learning included, by number of {unit}s{left}:"
    return together(
        [in_words, paragraph(explanation), html_table(headings, rows, label=f"Headline {one.title}".strip())]
    )


def _without_scaling(series: Campaign, title: str) -> Html:
    if series.varies_settings:
        return division.headline(series, label=f"Headline {title} {series.rows[0].series}".strip())
    return _sweep(series, title) if series.is_sweep else Html(markup="", text="")


def _tried(rows: Sequence[CaseRow]) -> Sequence[CaseRow]:
    """Without the cases that the hardware had no place for, unless there are no others: *Limits* has them."""
    failed = [row.case_id for row in rows if any(failure.outcome != "skipped" for failure in row.failures)]
    return [row for row in rows if row.rounds_completed or row.case_id in failed] or rows


def _controls(one: ResultSet) -> Html:
    """Seconds an iteration of every control, by number of ranks; nothing where there is none. Sweeps have their own."""
    controls = one.campaign.only(lambda result: not (result.case.learns or result.case.is_pipeline))
    sweeps = {name for name in controls.series_names if controls.series(name).is_sweep}
    rows = [row for row in controls.rows if row.rounds_completed and row.series not in sweeps]
    if not rows:
        return Html(markup="", text="")
    sizes = sorted({row.world_size for row in rows})
    unit = "GPU" if all(row.device == "cuda" for row in rows) else "rank"
    by_size = {(row.series, row.world_size): row for row in reversed(rows)}  # one node before several
    table = html_table(
        ["Control", *(counted(size, unit) for size in sizes)],
        (
            [
                link(f"{name}: {series_title(series.results[0].case)}", address_of(series)),
                *(_with_rounds(by_size.get((name, size)), _time) for size in sizes),
            ]
            for name in dict.fromkeys(row.series for row in rows)
            for series in [one.campaign.series(name)]
        ),
        label=f"Controls {one.title}".strip(),
    )
    return together([paragraph("One part of an iteration and nothing else: seconds an iteration."), table])


def _sweep(series: Campaign, title: str) -> Html:
    """Frames per second at every number of environments, one row a library."""
    name = series.rows[0].series
    sizes = sorted({row.num_envs for row in series.rows})
    by_size = {(row.rl_library, row.stack, row.num_envs): row for row in series.rows}
    kinds = dict.fromkeys((row.rl_library, row.stack) for row in series.rows)
    table = html_table(
        ["Series", *(f"{size:,}" for size in sizes)],
        (
            [
                link(f"{name}: {library}, {stack}", address_of(series)),
                *(_with_rounds(by_size.get((library, stack, size)), _frames) for size in sizes),
            ]
            for library, stack in kinds
        ),
        label=f"Headline {title} {name}".strip(),
    )
    learning = ", learning included," if series.is_training else ""
    return together([paragraph(f"Frames per second{learning} by number of environments:"), table])


def _cost_of_nodes(one: ResultSet, pairs: Sequence[CasePair]) -> Html:
    rows = {row.case_id: row for row in one.campaign.rows}
    table = pair_tables.nodes(pairs, rows, label=f"Cost of nodes {one.title}".strip())
    words = "The same ranks on more nodes and on fewer: how much longer an iteration takes, and nothing of scaling."
    return together([paragraph(words), table, pair_tables.more_on_nodes()])


def _in_words(campaign: Campaign, groups: Sequence[ScalingGroup], unit: str) -> str:
    """What is left of ideal where most ranks ran, by kind of scaling, and how many curves say something for sure."""
    most, left = left_of_ideal(campaign)
    if not left:
        return f"No case completed on several {unit}s together with its baseline, so nothing is known of scaling."
    parts = []
    works: Mapping[Scaling, str] = {"weak": "grows with them", "strong": "stays the same"}
    for kind, work in works.items():
        if found := left.get(kind):
            low, high = (f"{100 * value:.0f}" for value in (min(found), max(found)))
            kept = f"{low} %" if low == high else f"{low} to {high} %"
            parts.append(f"{kept} of ideal where the work {work}")
    words = number_of_verdicts(groups)
    said = ", ".join(f"{word} ({number})" for word, number in words.most_common())
    return f"{counted(most, unit)} reach {', and '.join(parts)}. Verdicts by their intervals: {said}."


def left_of_ideal(campaign: Campaign) -> tuple[int, dict[Scaling, list[float]]]:
    """The most ranks that ran beside their baseline, and the efficiencies of all curves there by kind of scaling.

    Of the curves that the table has, but for emulated nodes, which say nothing of scaling.
    """
    real = campaign.only(lambda result: not is_emulated(result))
    shown = [row for name in real.series_names for row in of_scaling(real.series(name).rows)]
    scaled = [row for row in shown if row.scaling_efficiency and row.world_size != row.baseline_world_size]
    most = max((row.world_size for row in scaled), default=0)
    found: dict[Scaling, list[float]] = {}
    for row in scaled:
        if row.world_size == most:
            found.setdefault(row.scaling, []).append(row.scaling_efficiency or 0)
    return most, found


def number_of_verdicts(groups: Sequence[ScalingGroup]) -> Counter[str]:
    """How many curves have each verdict."""
    return Counter(verdict(group).word or MISSING for group in groups if len(group.points) > 1)


def _fps(rows: Sequence[CaseRow], series: str, curve: str, size: int) -> str:
    """Of the case on one node where several topologies have this many ranks."""
    found = [row for row in rows if (row.series, row.curve, row.world_size) == (series, curve, size)]
    if not found:
        return MISSING
    return _frames(min(found, key=lambda row: row.nnodes))


def _with_rounds(row: CaseRow | None, shown: Callable[[CaseRow], str]) -> str:
    if row is None or not row.rounds_completed:
        return MISSING
    return f"{shown(row)}; {rounds_text([row.rounds_completed])}"


def _time(row: CaseRow) -> str:
    return interval_of(row.iteration_time_s, row.iteration_time_interval_s, seconds)


def _frames(row: CaseRow) -> str:
    return interval_of(row.total_fps, row.total_fps_interval, count)


def _judged(rows: Sequence[CaseRow], group: ScalingGroup | None, series: str, curve: str) -> list[str]:
    measured = [row for row in rows if (row.series, row.curve) == (series, curve) and row.scaling_efficiency]
    if group is None or not measured:
        return [MISSING] * len(JUDGED)
    largest = max(measured, key=lambda row: row.world_size)
    efficiency_text = f"{percent(largest.scaling_efficiency)} at {largest.world_size}"
    rounds = rounds_text([len(point.times_s) for point in group.points])
    interval = percent_interval(largest.scaling_efficiency_interval)
    return [efficiency_text, interval, rounds, verdict(group).word or MISSING]


def address_of(series: Campaign) -> str:
    return address_of_series(series.rows[0].task, series.rows[0].series)


def scaling_part(campaign: Campaign) -> Campaign:
    """Without the controls, sweeps of environments and tuned series: they are shown apart."""
    others = [name for name in campaign.series_names if campaign.series(name).kind != "scaling"]
    return campaign.only(lambda result: result.case.learns and result.case.series not in others)
