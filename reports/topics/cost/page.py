"""Which number of GPUs and of environments to choose, for a deadline or a budget."""

from collections.abc import Callable

from reports.analysis.analysed_set import Campaign
from reports.analysis.scaling.answer import cost_answer
from reports.analysis.scaling.scaling_groups import scaling_groups
from reports.analysis.time_to_reward import SMOOTHING_WINDOW, rewarded_curves, time_to_reward
from reports.display.addresses import address_of_series
from reports.display.calculator import FRAMES, calculator
from reports.display.charts.sweep import environments
from reports.display.html import (
    Displayed,
    Html,
    answer_of_page,
    bullets,
    heading,
    link,
    paragraph,
    side_by_side,
    together,
)
from reports.sets.version import ResultSet, Version
from reports.topics.cost import tables as choosing_tables
from reports.topics.cost.chart import time_and_cost
from reports.topics.cost.model import KNEE_WORTH, Choice, choice
from reports.topics.cost.sizes import NEAR_MOST, Failed, SizeChoice, size_choices


def opening(version: Version) -> Html:
    """The answer, and the calculator; nothing if no machine ran on several numbers of GPUs."""
    if not version.lines:
        return Html(markup="", text="")
    return together([answer_of_page(cost_answer(version.lines)), calculator(version.lines)])


def rules() -> Html:
    """What the tables are for, and what makes a claim one."""
    return bullets(
        [
            (
                f"Hours and costs are for {FRAMES:,} frames, environment steps of all environments together. Twice as"
                " many take twice as long. A reward may need more frames on more GPUs. Start-up comes once for each"
                " training, and is not in the hours."
            ),
            "A cost is in GPU-hours: the hours times the GPUs that were used. Multiply by what an hour costs you.",
            (
                "The worth of an added GPU is what it adds to the throughput, over what one GPU gives at the smallest"
                " number. The last worth adding is the largest number before an added one gives less than"
                f" {KNEE_WORTH:g} of that."
            ),
            (
                "A claim is clear when the intervals over rounds leave no other. It is within noise where they do, or"
                " where too few rounds ran to have any; then it is what the means say. The fewest GPU-hours and the"
                " most GPUs worth adding are such claims; the fewest hours are always what the means say."
            ),
        ]
    )


def in_short(version: Version) -> Html:
    """One table a set."""

    def table(campaign: Campaign) -> list[Displayed]:
        label = f"In short {campaign.title}".strip()
        return [choosing_tables.in_short(_choices(campaign), frames=FRAMES, unit=_unit(campaign), label=label)]

    nothing = "No series with a completed round varies the number of GPUs, so there is nothing to choose from."
    shown = _of_every_set(version, table, nothing, depth=2)  # before the first section
    left_out = len(_of_sets(version, _scaling)) - len(_choosable(version))
    if not left_out:
        return shown
    said = "Sets of one number of GPUs are left out: there is nothing to choose."
    return together([shown, paragraph(said)])


def options(version: Version) -> Html:
    """Every measured number of GPUs of every series, one table a set."""

    def table(campaign: Campaign) -> list[Displayed]:
        label = f"Options {campaign.title}".strip()
        return [choosing_tables.options(_choices(campaign), frames=FRAMES, unit=_unit(campaign), label=label)]

    return _of_every_set(version, table, "Nothing was measured of this.")


def charts(version: Version) -> Html:
    """Time against cost, one chart a series."""
    depth = 4 if version.must_name_sets else 3

    def of_set(campaign: Campaign) -> list[Displayed]:
        return [side_by_side(_chart(campaign.series(name), depth) for name in campaign.series_names)]

    return _of_every_set(version, of_set, "Nothing was measured of this.")


def _chart(series: Campaign, depth: int) -> Displayed:
    name = series.rows[0].series
    drawn = time_and_cost(series, _choices(series), frames=FRAMES, unit=_unit(series))
    return together([heading(link(name, address_of_series(series.rows[0].task, name)), depth=depth), drawn])


def sizes(version: Version) -> Html:
    """Of every series that varies the environments of a rank alone; a sentence where there is none."""
    parts: list[Displayed] = []
    for one in version.scaling:
        for name in one.campaign.series_names:
            series = one.campaign.series(name)
            found = size_choices(series.results) if series.is_sweep else ()
            if found:
                title = f"{name}: {one.title}" if len(version.scaling) > 1 else name
                parts.append(heading(link(title, address_of_series(series.rows[0].task, name))))
                parts += _sizes(series, found)
    return (
        together(parts)
        if parts
        else paragraph(
            "No series of this version varies the environments of a GPU and nothing else, so nothing was measured of"
            " this. The matrix env-sweep does."
        )
    )


def rewards(version: Version) -> Html:
    """Of every curve whose rounds all reached some reward that none began with."""

    def table(campaign: Campaign) -> list[Displayed]:
        rows, without = [], []
        for name, results, reward in rewarded_curves(campaign):
            if reward is None:
                without.append(name)
            else:
                rows += [(name, result, time_to_reward(result, reward)) for result in results]
        label = f"Time to a reward {campaign.title}".strip()
        parts: list[Displayed] = [choosing_tables.rewards(rows, unit=_unit(campaign), label=label)] if rows else []
        if without:
            parts.append(
                paragraph(
                    f"{', '.join(without)}: the rounds are too short to say, since the reward did not rise in all of"
                    " them above what it was at first."
                )
            )
        return parts

    return _of_every_set(version, table, "Nothing was measured of this.", part=_training)


def reward_rule() -> Html:
    return paragraph(
        "The reward of a curve is the highest that every one of its rounds reached, as the median of"
        f" {SMOOTHING_WINDOW} iterations, and the time that of all iterations until then, the first included. It is an"
        " early reward of short rounds: it says how fast learning sets in, and not when the task is solved."
    )


def _of_every_set(
    version: Version,
    show: Callable[[Campaign], list[Displayed]],
    nothing: str,
    *,
    depth: int = 3,
    part: Callable[[Campaign], Campaign] | None = None,
) -> Html:
    """``show`` gets of each set ``part``, by default what has numbers of ranks to choose from, if any is there."""
    parts: list[Displayed] = []
    for one, campaign in _of_sets(version, part) if part else _choosable(version):
        parts += [heading(one.title, depth=depth)] if version.must_name_sets else []
        parts += show(campaign)
    return together(parts) if parts else paragraph(nothing)


def _choosable(version: Version) -> list[tuple[ResultSet, Campaign]]:
    """Return the series with several numbers of ranks of every set that has any; all of scaling where none has."""
    return _of_sets(version, _with_a_choice) or _of_sets(version, _scaling)


def _of_sets(version: Version, part: Callable[[Campaign], Campaign]) -> list[tuple[ResultSet, Campaign]]:
    """Return every set of which this part has rows, with the part."""
    found = [(one, part(one.campaign)) for one in version.scaling]
    return [(one, campaign) for one, campaign in found if campaign.rows]


def _with_a_choice(campaign: Campaign) -> Campaign:
    found = _scaling(campaign)
    completed = {name: [row for row in found.series(name).rows if row.rounds_completed] for name in found.series_names}
    kept = {name for name, rows in completed.items() if len({row.world_size for row in rows}) > 1}
    return found.only(lambda result: result.case.series in kept)


def _scaling(campaign: Campaign) -> Campaign:
    """Without the series that compare stacks alone: between them there is no number of ranks to choose."""
    found = _training(campaign)
    stacks = {name for name in found.series_names if found.series(name).compares_stacks_alone}
    return found.only(lambda result: result.case.series not in stacks)


def _training(campaign: Campaign) -> Campaign:
    """Of the series that train, those of scaling with a completed round, and not those that vary nodes alone."""
    trained = campaign.only(lambda result: result.case.learns)
    parts = {name: trained.series(name) for name in trained.series_names}
    kept = {
        name
        for name, part in parts.items()
        if part.completed and part.kind == "scaling" and not part.pairs_without_scaling
    }
    return trained.only(lambda result: result.case.series in kept)


def _choices(campaign: Campaign) -> list[Choice]:
    return [found for group in scaling_groups(campaign.with_twins) if (found := choice(group)) is not None]


def _sizes(series: Campaign, found: tuple[SizeChoice, ...]) -> list[Displayed]:
    sentences = [
        f"{one.who}: {one.enough.number:,} environments are the fewest with at least {NEAR_MOST:.0%} of the most"
        f" throughput ({one.enough.reason})."
        if one.enough.word == "clear"
        else f"{one.who}: within noise; by the means {one.enough.number:,} environments are the fewest with at least"
        f" {NEAR_MOST:.0%} of the most throughput ({one.enough.reason})."
        for one in found
    ]
    sentences += [f"{failed.case_id}: {_ended(failed)}." for one in found for failed in one.failed]
    if others := _other_processes(series):
        sentences.append(
            f"Other processes were on the GPU ({others}): the memory below includes theirs; runs may have been slowed."
        )
    label = f"Environments of {series.rows[0].series} {series.title}".strip()
    return [bullets(sentences), environments(series), choosing_tables.sizes(found, series.inside, label=label)]


def _other_processes(series: Campaign) -> str:
    """What env_check found on the GPUs before these rounds; empty where it found none, or did not look."""
    checks = (check for record in series.completed for check in record.environment.checks)
    found = [check.found for check in checks if (check.name, check.verdict) == ("other_processes", "warning")]
    return "; ".join(dict.fromkeys(found))


def _ended(failed: Failed) -> str:
    return "ran out of memory" if failed.outcome == "oom" else f"no round completed ({failed.outcome})"


def _unit(campaign: Campaign) -> str:
    return "GPU" if all(row.device == "cuda" for row in campaign.rows) else "rank"
