"""The section of a series on the page of its task: its answer, and in a fold everything else that is known of it."""

from collections.abc import Iterator, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign, has_one_size, shared_kind
from reports.display.addresses import anchor_of_series
from reports.display.html import Displayed, Html, bullets, fold, heading, link, paragraph, together
from reports.display.pair_tables import stacks_of
from reports.display.topic import SeriesPart
from reports.sets.version import Version
from reports.topics.tasks import page as series
from reports.topics.tasks.overview import series_of
from reports.topics.tasks.series_answer import series_answer

type Part = tuple[str, Sequence[Html]]  # heading, and what is below it

ONE_SIZE: Final = "This series ran on one number of ranks, so nothing can be said of how it scales."
SWEEP: Final = (
    "This series varies the number of environments on one number of ranks. Where its line turns flat, more environments"
    " bring no more frames, and each update learns from more of them."
)
TUNED: Final = (
    "A case as shipped has upstream's settings. A tuned case changes settings that Isaac Lab and the RL libraries"
    " offer. The table compares each change with the case as shipped."
)
SETTINGS: Final = {
    "deterministic": "A deterministic case has the settings of --deterministic. The page on them compares the two.",
    "shared_gpu": (
        "Cases with several trainings run them at the same time on one GPU. The slowest stands for all here; the page"
        " on several trainings has their sum."
    ),
    "versions": "Cases have other versions of packages than the worker, which their names say.",
}
COLD: Final = (
    "Cases whose names end with -cold begin every round with an empty kernel cache. Kernels are kept for the others."
    " No round of such a series is measured in turns: ranks would wait for each other within their starts."
)
CONTROL: Final = (
    "This series is a single-part test: it runs one part of an iteration and nothing else, and trains nothing."
)


def section(version: Version, task: str, name: str, of_topics: Sequence[SeriesPart]) -> Html:
    """Show the answer of a series, and in a fold everything else, with the parts that other topics give."""
    parts = series_of(version, task)[name]
    lines = [line for line in version.lines if (line.task, line.series) == (task, name)]
    inside: list[Displayed] = []
    for title, shown in _with_others(version, parts, of_topics):
        anchor = f"{anchor_of_series(name)}-{title.lower().replace(' ', '-')}"
        inside += [heading(title, anchor=anchor), *shown]
    return together([paragraph(series_answer(parts, lines)), fold(f"All cases, charts and remarks of {name}", inside)])


def _with_others(version: Version, parts: Sequence[Campaign], of_topics: Sequence[SeriesPart]) -> Iterator[Part]:
    """With what other topics show of a series: below a heading that is there, or below their own after it."""
    for title, shown in _parts(parts):
        added = [(part.title, part.shown(version, parts)) for part in of_topics if part.after == title]
        yield title, [*shown, *(html for own, more in added if own is None for html in more)]
        yield from ((own, more) for own, more in added if own is not None and more)


def _parts(parts: Sequence[Campaign]) -> Iterator[Part]:
    kind = shared_kind(parts)
    if not any(part.is_training for part in parts):
        yield from _control(parts)
    elif kind == "start_up":
        yield "What was measured", [series.facts(parts), paragraph(COLD), series.cases(parts)]
    elif kind == "sweep":
        yield "What was measured", [series.facts(parts), paragraph(SWEEP)]
        yield "How many environments", [bullets([link("Chart", f"#{series.SWEEPS}")]), series.cases(parts)]
        yield "Where the time goes", [series.time_split(parts)]
    elif kind in SETTINGS:
        yield "What was measured", [series.facts(parts), paragraph(SETTINGS[kind]), series.cases(parts)]
        yield "Where the time goes", [series.time_split(parts)]
    elif kind == "tuned":
        yield "What was measured", [series.facts(parts), paragraph(TUNED)]
        yield "What each change gains", [series.gains(parts)]
        yield "All cases", [series.cases(parts)]
        yield "Where the time goes", [series.time_split(parts)]
    elif has_one_size(parts):
        stacks = stacks_of(parts)
        yield "What was measured", [paragraph(ONE_SIZE), series.facts(parts), series.cases(parts), stacks]
        yield "Throughput", [series.throughput(parts)]
        yield "Where the time goes", [series.time_split(parts)]
    else:
        yield from _scaling(parts)
    yield from _end(parts)


def _scaling(parts: Sequence[Campaign]) -> Iterator[Part]:
    yield "What was measured", [series.facts(parts), series.cases(parts), series.verdicts(parts)]
    yield "Speed-up", [series.speedup(parts)]
    yield "Scaling efficiency", [series.efficiency(parts)]
    yield "Throughput", [series.throughput(parts)]
    yield "Where the time goes", [series.time_split(parts)]
    yield "How far the ranks lie apart", [series.rank_skew(parts)]


def _control(parts: Sequence[Campaign]) -> Iterator[Part]:
    yield "What was measured", [paragraph(CONTROL), series.facts(parts), series.cases(parts)]
    yield "Throughput", [series.throughput(parts)]
    yield "Where the time goes", [series.time_split(parts)]
    yield "How far the ranks lie apart", [series.rank_skew(parts)]


def _end(parts: Sequence[Campaign]) -> Iterator[Part]:
    """What every series has at the end."""
    yield "Start-up", [series.start_up(parts)]
    yield "Memory and energy", [series.resources(parts)]
    if any(part.is_training for part in parts):
        yield "Learning", [series.learning(parts)]
    yield "Remarks on the rounds", [series.remarks(parts)]
