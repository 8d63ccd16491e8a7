"""What worked in sets that have no speeds: those of a CPU, and those of GPUs in which no round completed."""

import html
from collections.abc import Sequence
from typing import Final

from reports.display.contributors import byline
from reports.display.html import (
    Cell,
    Displayed,
    Html,
    bullets,
    count,
    heading,
    html_table,
    paragraph,
    seconds,
    together,
)
from reports.display.per_set import under_titles
from reports.pages.learned import learning
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted
from suite.records.worked import LEGEND, SPEEDS_MEAN_NOTHING, SYMBOLS, Worked, what_worked

MIN_LEARNED: Final = 10  # iterations; of fewer a reward says nothing
NOT_MEASURED: Final = (
    "These ran on a CPU, or none of their rounds completed. They show what works there and say nothing of speed."
)


def opening(version: Version) -> Html:
    """Whether all of it works, where, and how long the rounds took."""
    worked = [one for each in version.without_speeds for one in what_worked(each.campaign.results)]
    if not worked:
        return paragraph("Nothing was trained here, so nothing is known of what works.")
    failed = sum(len(one.failed) for one in worked)
    rounds = sum(len(each.campaign.completed) for each in version.without_speeds) + failed
    where = "; ".join(dict.fromkeys(each.campaign.where for each in version.without_speeds))
    said = (
        f"Everything works on {where}: {counted(rounds, 'run')}, each to its end."
        if not failed
        else f"Not everything works on {where}: {failed} of {counted(rounds, 'run')} did not complete."
    )
    took_s = sum(map(_took_s, version.without_speeds))
    took = f" One after another they took {_in_words(took_s)}." if took_s else ""
    return paragraph(said + took)


def marks(version: Version) -> Html:
    """A mark for each part by task and library, then why a part failed and where its logs are."""
    return under_titles(version.without_speeds, _marks_of, are_named=len(version.without_speeds) > 1)


def beside(version: Version) -> Html:
    """The same on a page that has speeds of other sets; nothing where all have them."""
    trained = [one for one in version.without_speeds if what_worked(one.campaign.results)]
    if not trained:
        return together(())
    return together(
        [
            heading("What works elsewhere", depth=2),
            paragraph(NOT_MEASURED),
            under_titles(trained, _marks_of, are_named=True),
        ]
    )


def learned(version: Version) -> Html:
    """Rewards, which do not depend on speed, of each series that trained long enough for some."""
    parts: list[Displayed] = []
    for one in version.without_speeds:
        for name in one.campaign.series_names:
            series = one.campaign.series(name)
            if series.is_training and max(result.case.iterations for result in series.results) >= MIN_LEARNED:
                parts += [heading(f"{name} {one.title}".strip()), learning(series)]
    return together([heading("What was learned", depth=2), *parts] if parts else [])


def details(version: Version) -> Html:
    """Speeds, folded away, and what they are worth."""
    rows: list[list[Cell]] = [
        [row.case_id, str(row.world_size), seconds(row.iteration_time_s), count(row.total_fps)]
        for one in version.without_speeds
        for row in one.campaign.rows
        if row.rounds_completed
    ]
    if not rows:
        return paragraph("No round completed.")
    table = html_table(["Case", "Ranks", "Seconds an iteration", "Frames per second"], rows, label="Meaningless speeds")
    note = paragraph(SPEEDS_MEAN_NOTHING)
    summary = "<summary>Frames per second, which are meaningless here</summary>"
    return Html(markup=f"<details>{summary}{note.markup}{table.markup}</details>", text=f"{note.text}\n{table.text}")


def _marks_of(one: ResultSet) -> Html:
    worked = what_worked(one.campaign.results)
    if not worked:
        return paragraph("Nothing was trained.")
    table = html_table(
        ["Task and library", "Ranks", *(part.capitalize() for part in worked[0].parts)],
        ([each.name, ", ".join(map(str, each.ranks)) or SYMBOLS["none"], *_symbols(each)] for each in worked),
        label=f"What works {one.title}".strip(),
    )
    shown = {state for each in worked for state in each.parts.values()}
    legend = "; ".join(f"{SYMBOLS[state]} {meaning}" for state, meaning in LEGEND.items() if state in shown)
    reasons = _reasons(worked)
    return together([byline(one.contributor), table, paragraph(legend), *([bullets(reasons)] if reasons else [])])


def _symbols(worked: Worked) -> list[Cell]:
    """Each with its meaning for who cannot see it."""
    return [
        Html(
            markup=f'<span role="img" aria-label="{html.escape(LEGEND[state])}">{SYMBOLS[state]}</span>',
            text=SYMBOLS[state],
        )
        for state in worked.parts.values()
    ]


def _reasons(worked: Sequence[Worked]) -> list[str]:
    return [
        f"{SYMBOLS['failed']} {record.case.case_id} round {record.round} {record.outcome}: {record.reason} "
        f"(logs: raw/{record.case.case_id}/r{record.round}/logs in the campaign's folder)"
        for one in worked
        for record in one.failed
    ]


def _took_s(one: ResultSet) -> float:
    return sum(record.wall_time_s or 0.0 for result in one.campaign.results for record in result.begun)


def _in_words(time_s: float) -> str:
    minutes, rest_s = divmod(round(time_s), 60)
    hours, minutes_of_hour = divmod(minutes, 60)
    if hours:
        return f"{counted(hours, 'hour')} and {counted(minutes_of_hour, 'minute')}"
    return f"{counted(minutes, 'minute')} and {counted(rest_s, 'second')}" if minutes else counted(rest_s, "second")
