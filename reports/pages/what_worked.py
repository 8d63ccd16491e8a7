"""What worked and what was learned in campaigns without speeds: on a CPU, on shared GPUs, or with no completed run."""

import html
from collections.abc import Sequence
from typing import Final

from reports.data.samples import present
from reports.data.words import environments_text, page_of_task, physics_name, size_text, task_name, variant_text
from reports.display.charts.curves import curves
from reports.display.charts.drawing import Texts
from reports.display.figure import make_figure, source_line
from reports.display.html import Cell, Html, bullets, heading, html_table, measured, paragraph, runs_in, together
from reports.figures.compare import Row
from reports.figures.lines import figure
from reports.figures.tables import runs_of
from reports.pages import method
from reports.pages.data import contributor
from reports.pages.rewards import curve
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted, slug
from suite.records.worked import (
    LEGEND,
    SYMBOLS,
    TIMES_MEAN_NOTHING,
    Worked,
    only_learning,
    what_worked,
)

MIN_LEARNED: Final = 10  # iterations; of fewer a reward says nothing
REWARD: Final = (
    "A reward is the median over the runs; of each it is the median of five iterations: those that the run ended with,"
    " and in a curve those up to there."
)


def opening(version: Version) -> Html:
    """Whether all of it works, where, and how long the rounds took."""
    worked = [
        training for result_set in version.without_speeds for training in what_worked(result_set.campaign.results)
    ]
    if not worked:
        return paragraph("Nothing was trained here, so nothing is known of what works.")
    failed = sum(len(training.failed) for training in worked)
    rounds = sum(len(result_set.campaign.completed) for result_set in version.without_speeds) + failed
    where = "; ".join(dict.fromkeys(result_set.campaign.where for result_set in version.without_speeds))
    unfinished = method.unfinished(version)
    sentences = (
        f"{'All that ran' if unfinished else 'Everything'} works on {where}: {counted(rounds, 'run')}, each to its end."
        if not failed
        else f"Not everything works on {where}: {failed} of {counted(rounds, 'run')} did not complete."
    )
    results = [result for result_set in version.without_speeds for result in result_set.campaign.results]
    times_s = [record.wall_time_s for result in results for record in result.begun]
    known_s = present(times_s)
    is_known = known_s and len(known_s) == len(times_s)
    hours = sum(known_s) / 3600
    duration = counted(round(hours, 1), "hour") if hours >= 1 else counted(round(60 * hours, 1), "minute")
    lasted = f"One after another they took {duration}." if is_known else ""
    if only_learning(results):
        lasted = TIMES_MEAN_NOTHING
    return paragraph(" ".join(filter(None, [sentences, lasted, unfinished])))


def marks(version: Version) -> Html:
    """A mark for each part by task and library, then why a part failed and where its logs are."""
    sets, parts = version.without_speeds, list[Html]()
    for result_set in sets:
        if len(sets) > 1:  # the figures of one set alone need no name
            parts.append(heading(result_set.title, anchor=slug(result_set.name)))
        parts.append(_marks_of(result_set))
    return together(parts)


def learned(version: Version) -> Html:
    """Rewards, which do not depend on speed, of each series that trained long enough for some."""
    sets = {result_set.name or "results" for result_set in version.without_speeds}
    series: dict[tuple[str, str, str], list[Row]] = {}
    for row in runs_of(version).configurations:
        if row["set"] in sets and row["workload"] == "train" and row["iterations"] >= MIN_LEARNED:
            series.setdefault((row["set"], row["task"], row["series"]), []).append(row)
    if not series:
        return together([])
    by_size = [sorted(rows, key=lambda row: (row["processes"], row["environments"])) for rows in series.values()]
    charts = [_chart(version, rows) for rows in by_size]
    table = _table(version, by_size)
    meaning = [paragraph(REWARD)] if table else []
    return together([heading("What was learned", depth=2, anchor="learning"), *table, *meaning, *charts])


def _table(version: Version, series: Sequence[Sequence[Row]]) -> list[Html]:
    """Processes, environments, runs and the reward at the end of each configuration that has it; [] if none has."""
    cells = [
        [
            _series(rows),
            _trained_by(row),
            str(row["processes"]),
            f"{row['environments']:,}",
            runs_in(reward),
            measured(reward),
        ]
        for rows in series
        for row in rows
        if (reward := figure(version, row, "last_reward"))
    ]
    headings = ["Series", "Trained by", "Processes", "Environments", "Runs", "last_reward"]
    return [html_table(headings, cells, label="Rewards at the end")] if cells else []


def _chart(version: Version, rows: Sequence[Row]) -> Html:
    """A line for each configuration of a series that reports rewards."""
    task = task_name(rows[0]["task"])
    # A label of the chart follows a reward, so it does not begin with a number.
    sizes = ((row, f"{counted(row['processes'], 'process')}, {environments_text(row['environments'])}") for row in rows)
    points = [point for row, size in sizes for point in curve(version, row, f"{_trained_by(row)}, {size}")]
    if not points:
        return paragraph(f"No run of {task} reported a reward in five iterations: training was too short.")
    name = rows[0]["set"]
    where = [own.campaign.where for own in version.without_speeds if (own.name or "results") == name]
    texts = Texts(
        title=f"What is learned: {_series(rows)}",
        source=source_line(version.name, where),
        x="Million frames",
        y="Reward",
    )
    figure_id = f"{page_of_task(task)}-{slug(name)}-{slug(rows[0]['series'])}-learning"
    return make_figure(curves(points, texts), figure_id=figure_id, data=together(_table(version, [rows])))


def _series(rows: Sequence[Row]) -> str:
    """``Ant, 1,024 environments per process``; of several sizes ``Ant, 2,048 to 16,384 environments per process``."""
    least, largest = min(row["size"] for row in rows), max(rows, key=lambda row: row["size"])
    size = size_text(largest).replace(" ", " environments ", 1)
    return f"{task_name(rows[0]['task'])}, " + (f"{least:,} to {size}" if least < largest["size"] else size)


def _trained_by(row: Row) -> str:
    physics = "" if row["physics"] == "kitless" else physics_name(row["physics"])
    return ", ".join(filter(None, [row["library"], physics, variant_text(row)]))


def _marks_of(result_set: ResultSet) -> Html:
    worked = what_worked(result_set.campaign.results)
    if not worked:
        return paragraph("Nothing was trained.")
    table = html_table(
        ["Task and library", "Processes", *(part.capitalize() for part in worked[0].parts)],
        (
            [training.name, ", ".join(map(str, training.ranks)) or SYMBOLS["none"], *_symbols(training)]
            for training in worked
        ),
        label=f"What works {result_set.title}".strip(),
    )
    shown = {state for training in worked for state in training.parts.values()}
    legend = "; ".join(f"{SYMBOLS[state]} {meaning}" for state, meaning in LEGEND.items() if state in shown)
    reasons = _reasons(worked)
    return together([*_byline(result_set), table, paragraph(legend), *([bullets(reasons)] if reasons else [])])


def _byline(result_set: ResultSet) -> list[Html]:
    if (who := contributor(result_set)) is None:
        return []
    sentence = "Checked here, not repeated; measured and contributed by"
    stop = "" if who.text.endswith(".") else "."
    return [Html(markup=f"<p>{sentence} {who.markup}{stop}</p>", text=f"{sentence} {who.text}{stop}")]


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
        f"{SYMBOLS['failed']} {record.case.case_id} run {record.round} {record.outcome}: {record.reason} "
        f"(logs: raw/{record.case.case_id}/r{record.round}/logs in the campaign's folder)"
        for training in worked
        for record in training.failed
    ]
