"""Compared: what others published beside ours, and Isaac Lab's own clock beside ours. Pure.

The page computes nothing: printed numbers, what follows from them, and differences of clocks are rows of the table of
figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.data.words import configuration_name, task_name
from reports.display.charts.drawing import Point, Texts
from reports.display.charts.speedup import speedup
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    MISSING,
    Cell,
    Html,
    answer_of_page,
    bullets,
    html_table,
    link,
    measured,
    paragraph,
    runs_in,
)
from reports.figures.compare import Row
from reports.figures.lines import Line, estimate, figure, over_gpus
from reports.figures.published import Source, Table, read_published
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import Version
from suite.files.wording import counted, joined
from suite.statistics.intervals import Estimate

HOURS: Final = "trainings_per_hour"
CLOCK_HEADINGS: Final = (
    "Configuration", "Campaign", "Pairs", "isaaclab_difference", "Least", "Most", "library_difference",
)  # fmt: skip
ROUNDED: Final = 0.01  # a range of a share that is worth showing
MOST_IN_ANSWER: Final = 4  # GPUs that all sources have


def answer(version: Version) -> Html:
    """Say what share of the ideal speed is kept here and there."""
    kept = [sentence for table in _works() if (sentence := _kept(version, table))]
    sentence = f"The share of the ideal speed that {MOST_IN_ANSWER} GPUs keep: {'; '.join(kept)}."
    return answer_of_page(sentence if kept else "Nothing here was measured on as many GPUs as others published.")


def _works() -> list[Table]:
    """Return the first table of every work that is ours too."""
    tables = [table for table in read_published().table if table.ours]
    return list({table.name: table for table in reversed(tables)}.values())[::-1]


def _kept(version: Version, work: Table) -> str:
    line, gpus, figures = _line(version, work), MOST_IN_ANSWER, rows_by_id(version)
    own = next((line.figure(row, "share_kept") for row in line.rows if row["gpus"] == gpus), None) if line else None
    if line is None or own is None:
        return ""
    theirs = [
        f"{_share(figure)} by {_author(table)}"
        for table in read_published().table
        for name in ("frames_per_s", HOURS)
        if table.name == work.name and (figure := figures.get(f"{_id(table, gpus, name)}_kept"))
    ]
    here = f"{work.title}, with {line.base['library']}, {measured(own)} here"
    return f"{here}, {joined(theirs)}"


# --- published -----------------------------------------------------------------------------------------------------


def sources(version: Version) -> Html:
    """Name the sources, with what they say of their terms, and what exceeds the ideal in them."""
    return bullets(_named(version, source) for source in read_published().source)


def _named(version: Version, source: Source) -> Html:
    start = f"{source.name}/"
    kept = [row for name, row in rows_by_id(version).items() if name.startswith(start) and name.endswith("_kept")]
    above = any(row["low"] > 1 for row in kept)
    title = link(source.title, source.url) if source.url else Html(markup=f"<em>{source.title}</em>", text=source.title)
    sentence = (
        f", {source.author}, {source.date}, read {source.read}: {source.terms}."
        f" {'Some' if above else 'None'} of its shares are above the ideal, whatever the rounding."
    )
    return Html(markup=title.markup + sentence, text=title.text + sentence)


@dataclass(frozen=True)
class Curve:
    """Shares of the ideal speed by the number of GPUs, without that of one GPU."""

    label: str
    kept: Sequence[tuple[int, Mapping[str, Any]]]
    where: str | None  # None: not ours

    def point(self, gpus: int, own: Estimate) -> Point:
        ends, is_ours = own.interval, self.where is not None
        return Point(
            label=self.label,
            x=gpus,
            y=own.value,
            interval=ends if is_ours else None,
            spread=None if is_ours else ends,
            is_sure=ends is not None,
        )


def chart(version: Version) -> Html:
    """Draw the shares of the ideal speed of work that grows with the GPUs, theirs and ours."""
    points, rows, drawn = [], [], _curves(version)
    for curve in drawn:
        points.append(Point(label=curve.label, x=1, y=1.0))
        points += [curve.point(gpus, estimate(figure)) for gpus, figure in curve.kept]
        rows += [[curve.label, str(gpus), measured(figure)] for gpus, figure in curve.kept]
    texts = Texts(
        title="Share of the ideal speed that training keeps",
        note="Other GPUs, versions and physics: compare shapes, not speeds.",
        source=source_line(version.name, [curve.where or "published by others" for curve in drawn]),
        x="GPUs",
        y="Share of ideal",
    )
    data = html_table(["Line", "GPUs", "share_kept"], rows, label="Values of the chart")
    return make_figure(speedup(points, texts, is_share=True), figure_id="compared", data=data)


def _curves(version: Version) -> list[Curve]:
    """Return a curve of each table, and ours of each work."""
    figures, curves = rows_by_id(version), []
    for table in (table for table in read_published().table if table.ours and table.ours["scaling"] == "weak"):
        ids = ((row.gpus, f"{_id(table, row.gpus, 'frames_per_s')}_kept") for row in table.rows)
        kept = [(gpus, figures[name]) for gpus, name in ids if name in figures]
        curves.append(Curve(f"{_author(table)}, {table.name.capitalize()}", kept, None))
    for work in _works():
        line = _line(version, work)
        if line and line.base["scaling"] == "weak":
            kept = [(row["gpus"], figure) for row in line.rows if (figure := line.figure(row, "share_kept"))]
            curves.append(Curve(f"labscale, {work.name.capitalize()}", kept, line.where))
    return curves


def table(version: Version) -> Html:
    """Show what each table keeps of the ideal speed, and ours below those of the same work."""
    tables = sorted(read_published().table, key=lambda table: table.ours is None)
    numbers = sorted({row.gpus for table in tables for row in table.rows})[1:]
    rows: list[Sequence[Cell]] = []
    for name in dict.fromkeys(table.name for table in tables):
        same = [table for table in tables if table.name == name]
        line = _line(version, same[0])
        rows += [_their_row(version, table, line, numbers) for table in same]
        rows += [_our_row(same[0], line, numbers)] if line else []
    headings = ["Work", "By, on", "On one GPU", *(f"Kept on {number} GPUs" for number in numbers), "Ours over theirs"]
    return html_table(headings, rows, label="Published figures and ours")


def _their_row(version: Version, table: Table, line: Line | None, numbers: Sequence[int]) -> list[str]:
    figures = rows_by_id(version)
    gpu = next(source.gpu for source in read_published().source if source.name == table.source)
    hours, fps = (figures.get(_id(table, 1, name)) for name in (HOURS, "frames_per_s"))
    first = (
        f"{measured(hours, lambda rate: f'{1 / rate:.1f}', has_interval=False)} hours"
        if hours
        else f"{measured(fps, has_interval=False)} frames/s"
    )
    column = HOURS if hours else "frames_per_s"
    kept = [figures.get(f"{_id(table, number, column)}_kept") for number in numbers]
    ratios = [(row["gpus"], line.figure(row, f"frames_per_s_of_{table.source}")) for row in line.rows] if line else []
    over = [f"{measured(own)} on {counted(gpus, 'GPU')}" for gpus, own in ratios if own]
    cells = [_share(own) if own else MISSING for own in kept]
    return [table.title, f"{_author(table)}, {gpu}", first, *cells, "; ".join(over) or MISSING]


def _our_row(table: Table, line: Line, numbers: Sequence[int]) -> list[str]:
    fps = measured(line.figure(line.base, "frames_per_s"), has_interval=False)
    kept = {row["gpus"]: line.figure(row, "share_kept") for row in line.rows}
    cells = [measured(kept.get(number)) for number in numbers]
    return [table.title, f"labscale, {line.where}", f"{fps} frames/s", *cells, MISSING]


def _share(figure: Mapping[str, Any]) -> str:
    is_range = figure["low"] is not None and figure["high"] - figure["low"] > ROUNDED
    return measured(figure, has_interval=is_range)


def _id(table: Table, gpus: int, column: str) -> str:
    return f"{table.source}/{table.name}/{gpus}/{column}"


def _author(table: Table) -> str:
    return next(source.author.partition(",")[0] for source in read_published().source if source.name == table.source)


def _line(version: Version, table: Table) -> Line | None:
    """Return our curve of the same work."""
    ours = table.ours or {}
    lines = over_gpus(version, task_name(str(ours["task"]))) if ours else []
    return next((line for line in lines if all(line.base[name] == value for name, value in ours.items())), None)


# --- clocks --------------------------------------------------------------------------------------------------------


def clock_answer(version: Version) -> Html:
    """Say how far our clock and others are apart; nothing where no run has two."""
    sentences = []
    library = _totals(version, "library_difference")
    if library:
        median, least, most = map(measured, library)
        sentences.append(
            f"In one process our clock and the RL library's differ by {median} in the median of"
            f" {runs_in(library[0], 'run')} ({least} to {most})."
        )
    pairs = next(
        (own for published in (version, *version.older) if (own := _totals(published, "isaaclab_difference"))), None
    )
    if pairs:
        median, least, most = map(measured, pairs)
        sentences.append(
            f"In two processes, one after the other, ours and Isaac Lab's own benchmark differ by {median} in the"
            f" median of {runs_in(pairs[0], 'pair')}; single pairs lie between {least} and {most}, and no"
            " interval is known."
        )
    return answer_of_page(" ".join(sentences)) if sentences else paragraph("No run here has two clocks.")


def _totals(version: Version, name: str) -> list[Mapping[str, Any]]:
    """Return the median, the least and the most of a difference of clocks; empty where none was measured."""
    known = (rows_by_id(version).get(f"total/{name}{end}") for end in ("", "_least", "_most"))
    return [figure for figure in known if figure]


def clocks(version: Version) -> Html:
    """Show every configuration that ran beside Isaac Lab's own benchmark, the newest version first."""
    rows = [
        cells
        for own in (version, *version.older)
        for row in runs_of(own).configurations
        if (cells := _clock_row(own, row))
    ]
    return html_table(CLOCK_HEADINGS, rows, label="Our clock beside others")


def _clock_row(version: Version, row: Row) -> list[str]:
    own = [figure(version, row, f"isaaclab_difference{end}") for end in ("", "_least", "_most")]
    if own[0] is None:
        return []
    to_library = measured(figure(version, row, "library_difference"))
    return [configuration_name(row), row["set"], runs_in(own[0]), *map(measured, own), to_library]
