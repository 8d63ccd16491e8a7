"""What is learned: runs of several seeds, the references made of them, and what measured rounds had there."""

import statistics
from collections.abc import Callable, Iterable, Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.seeds import Seeds, Size, seeds
from reports.display.charts.curves import curves, stride_of
from reports.display.charts.drawing import Point, Texts
from reports.display.figure import Figure, figure_of, source_of
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    estimated,
    heading,
    html_table,
    paragraph,
    together,
)
from reports.display.series_tables import STACK_NAMES, series_title
from reports.sets.version import ResultSet, Version
from reports.topics.tuning.learned_beside import (
    MIN_ITERATIONS,
    MIN_SHARED_SEEDS,
    Beside,
    several_beside_one,
    stacks_beside_newton,
)
from reports.topics.tuning.learning_references import MIN_MARGIN, MIN_SEEDS
from suite.files.wording import are, counted
from suite.matrix.catalog import load_catalog
from suite.records.learning_check import OVER
from suite.schema.record import CaseResult
from suite.statistics.intervals import CONFIDENCE


def has_seeds(version: Version) -> bool:
    return any(one.campaign.completed for one in _sets(version))


def answer(version: Version) -> Html:
    """Say how many rewards of measured rounds were compared with a reference, and how many lie below it."""
    every = seeds_of(version)
    judged = [one for found in every for one in found.judged]
    compared = sum(len(one.measured) for one in judged)
    below = sum(one.measured_below for one in judged)
    seed_runs = f"{counted(sum(found.num_runs for found in every), 'run')} of several seeds"
    if not compared:
        return answer_of_page(f"{seed_runs} say what a sound run learns. No measured round has a size of theirs.")
    return answer_of_page(
        f"{seed_runs} say what a sound run learns in {counted(len(every), 'size')}. Of {counted(compared, 'reward')} of"
        f" measured rounds {below or 'none'} {are(below or 1)} lower than that."
    )


def seeds_of(version: Version) -> tuple[Seeds, ...]:
    """All sizes that sets with several seeds have."""
    catalog = load_catalog()
    measured = [result for one in version.sets if one.role != "learning" for result in one.campaign.results]
    return seeds(version.learned, measured, lambda case: catalog.learning_references(case.task, case.rl_library))


def runs(version: Version) -> Html:
    """One part for each size: figure, references and what measured rounds had."""
    catalog = load_catalog()
    parts: list[Displayed] = []
    for found in seeds_of(version):
        table = _table(found)
        parts += [
            heading(_what(found)),
            paragraph(
                f"{_how_many(found)}, {found.size.frames_per_iteration:,} frames and"
                f" {found.size.optimiser_steps} optimiser steps an iteration."
                + _alone(catalog.why_ranks_learn_alone(found.size.task))
            ),
            _chart(_of_first_seed(version, found), found, table),
            table,
        ]
    return together(parts)


def _chart(campaign: Campaign, found: Seeds, table: Html) -> Figure:
    """Draw the reward of every seed, and what a sound run has at least. ``campaign``: of one of the seeds."""
    points = []
    for seed, rewards in found.curves.items():
        stride = stride_of(len(rewards))
        points += [
            Point(label=f"seed {seed}", x=iteration, y=reward)
            for iteration, reward in enumerate(rewards)
            if reward is not None and iteration % stride == 0
        ]
    least = [
        Point(label="at least", x=one.reference.iterations - 1, y=one.reference.reward_at_least) for one in found.judged
    ]
    several = "; of a seed with several runs the first" if found.num_runs > len(found.curves) else ""
    texts = Texts(
        title=f"{task_name(found.case.task)}: reward of every seed",
        note=f"A line is a seed{several}. Triangles: a round below is no measurement.",
        source=source_of(campaign),
        x="Iteration",
        y="Mean return",
    )
    size = found.size  # one set and series may have the same frames and steps on two stacks
    parts = (size.rl_library, size.stack, found.case.topology, size.frames_per_iteration, size.optimiser_steps)
    name = "-".join(("seeds", *map(str, parts)))
    return figure_of(campaign, curves(points, texts, least=least), name, data=table)


def ranks(version: Version) -> Html:
    """Several ranks beside one, of all sets."""
    pairs = several_beside_one(results_of_all_sets(version))
    if not pairs:
        return paragraph("No size ran on one rank and on several.")
    return _table_of(
        pairs,
        lambda pair: f"{_size_of(pair)}, {pair.size.stack}: {counted(pair.other.world_size, 'rank')}",
        ["Ranks beside one", "One rank (seeds)", "Several (seeds)", "Difference", "They learn (seeds of both)"],
        label="Several ranks beside one rank with as many environments",
    )


def stacks(version: Version) -> Html:
    """What is learned on other physics and on Newton, of all sets, with its heading and its rule."""
    pairs = stacks_beside_newton(results_of_all_sets(version))
    title = heading("What is learned", depth=2, anchor="what-is-learned")
    if not pairs:
        return together([title, paragraph("No size ran on two stacks.")])
    table = _table_of(
        pairs,
        lambda pair: f"{_size_of(pair)}, {counted(pair.other.world_size, 'rank')}: {STACK_NAMES[pair.other.stack]}",
        ["Stack beside Newton", "Newton (seeds)", "Its rewards (seeds)", "Difference", "It learns (seeds of both)"],
        label="What is learned on other stacks beside Newton",
    )
    return together([title, _stacks_rule(), table])


def _table_of(pairs: Iterable[Beside], name: Callable[[Beside], str], headings: Sequence[str], *, label: str) -> Html:
    return html_table(
        [*headings, "Iteration"],
        (
            [
                name(pair),
                _range(tuple(pair.base_rewards.values())),
                _range(tuple(pair.other_rewards.values())),
                estimated(pair.difference, lambda value: f"{value:.3g}"),
                f"{pair.verdict} ({len(pair.differences)})",
                str(pair.iterations),
            ]
            for pair in pairs
        ),
        label=label,
    )


def _size_of(pair: Beside) -> str:
    size = pair.size
    return (
        f"{size.task}, {size.rl_library}, {size.frames_per_iteration:,} frames and"
        f" {counted(size.optimiser_steps, 'optimiser step')} an iteration"
    )


def results_of_all_sets(version: Version) -> list[CaseResult]:
    return [result for one in version.sets for result in one.campaign.results]


def ranks_rule() -> Html:
    return paragraph(
        "Ranks average their gradients, so several should learn what one learns with the environments of all: the same"
        " frames, the same optimiser steps. What they do not share may make a difference. Rewards of the iteration"
        f" that most seeds of both reached, {MIN_ITERATIONS} at least, mean over ranks. " + _difference_rule()
    )


def _stacks_rule() -> Html:
    return paragraph(
        "Another engine solves contacts in another way, so the same seed learns something else in it. A stack that is"
        " slower may learn more of as many frames. Rewards of the iteration that most seeds of both reached,"
        f" {MIN_ITERATIONS} at least. " + _difference_rule()
    )


def _difference_rule() -> str:
    return (
        "The difference is the median"
        f" over the seeds that both have, with its interval at {CONFIDENCE:.0%} by Student's t. Fewer than"
        f" {MIN_SHARED_SEEDS} seeds have none, and which learn more is unknown. Rounds that are no measurement because"
        " they learned less than their reference count here."
    )


def rule() -> Html:
    return paragraph(
        f"A reference needs {MIN_SEEDS} seeds, each of which counts once, by the worst of its runs. Of the seeds of the"
        " sets that it names, it lies as far below the worst as that one below the best,"
        f" {MIN_MARGIN:.0%} of the best at least, and is of one stack and size: other physics and"
        " other numbers of frames or optimiser steps in an iteration learn otherwise. A reward is"
        f" the median of the last {OVER} iterations, each the mean over the ranks that keep one: of rsl_rl rank 0."
        " A round that learned less is invalid, by the references of its day, which later runs may have moved: the page"
        " Limits has it, with its reason. Worst, median and best are of all runs made to see what is learned; measured"
        " elsewhere are rounds of other sets, of which some may be named by the reference, and so cannot test it."
    )


def _what(found: Seeds) -> str:
    """Of no other size."""
    return (
        f"{series_title(found.case)}: {found.size.rl_library}, {found.size.stack},"
        f" {counted(found.case.world_size, 'rank')}, {counted(found.size.optimiser_steps, 'optimiser step')}"
    )


def _how_many(found: Seeds) -> str:
    """Seeds, and runs where there are more."""
    said = counted(len(found.curves), "seed")
    return said if found.num_runs == len(found.curves) else f"{said} in {found.num_runs} runs"


def _alone(what: str | None) -> str:
    return f" Each rank learns something alone: {what}. So references are of as many ranks." if what else ""


def _sets(version: Version) -> list[ResultSet]:
    return [one for one in version.sets if one.role == "learning"]


def _of_first_seed(version: Version, found: Seeds) -> Campaign:
    """For where it ran."""
    parts = (one.campaign.only(lambda result: Size.of(result.case) == found.size) for one in _sets(version))
    return next(part for part in parts if part.rows)


def _table(found: Seeds) -> Html:
    if not found.judged:
        return paragraph("The catalog has no reference of this size.")
    sources = dict.fromkeys(source for one in found.judged for source in one.reference.source.split())
    table = html_table(
        ["Iteration", "Worst run", "Median run", "Best run", "At least", "Measured elsewhere", "Below"],
        (
            [
                str(one.reference.iterations),
                *_spread([reward for of_seed in one.seed_rewards.values() for reward in of_seed if reward is not None]),
                f"{one.reference.reward_at_least:.3g}",
                _range(one.measured),
                str(one.measured_below) if one.measured else MISSING,
            ]
            for one in found.judged
        ),
        label=f"References of {found.case.case_id}",
    )
    return together([table, paragraph(f"The references are made of {', '.join(sources)}.")])


def _spread(rewards: list[float]) -> list[str]:
    if not rewards:
        return [MISSING] * 3
    return [f"{value:.3g}" for value in (min(rewards), statistics.median(rewards), max(rewards))]


def _range(rewards: tuple[float, ...]) -> str:
    """Of the rounds that learned otherwise than each other."""
    if not rewards:
        return "none"
    if len(rewards) == 1:
        return f"{rewards[0]:.3g}"
    return f"{min(rewards):.3g} to {max(rewards):.3g} ({len(rewards)})"
