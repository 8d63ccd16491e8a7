"""Published figures of others, with the cases of this report that come nearest."""

from collections.abc import Sequence
from typing import Final

import reports.topics.others.published as figures
from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import CaseRow
from reports.display.charts.drawing import Point, Texts
from reports.display.charts.speedup import speedup
from reports.display.figure import Figure, figure_of, source_of
from reports.display.html import (
    MISSING,
    Cell,
    Displayed,
    Html,
    answer_of_page,
    bullets,
    count,
    heading,
    html_table,
    link,
    paragraph,
    percent,
    together,
)
from reports.display.series_tables import speedups
from reports.sets.version import Version
from reports.topics.others.published import Row, Source, Table, read_published
from reports.topics.others.published_beside import cases_beside, fewest_rounds, fps_beside, most_tuned
from suite.files.wording import counted

EXACT: Final = 0.005  # of an efficiency: rounding that leaves less open is not worth a range


def answer() -> Html:
    """How many efficiencies the sources imply, and how many of them cannot be."""
    published = read_published()
    found = [one for table in published.table for one in figures.implied(table)]
    surely = sum(low > 1 for _, (low, _) in found)
    return answer_of_page(
        f"{counted(len(published.source), 'source')} imply {len(found)} efficiencies of several GPUs;"
        f" {surely} of them exceed 100 % even after the worst rounding."
    )


def sources() -> Html:
    """Where the figures are from and how they were obtained, as far as their sources say."""
    return bullets(
        together([named_source(source), Html(markup=f"{source.author}, {source.date}; read {source.read}.", text="")])
        for source in read_published().source
    )


def tables(version: Version) -> Html:
    """Every published table, each with the same cases of this report beside it where there are any."""
    published = read_published()
    by_name = {source.name: source for source in published.source}
    return together(part for table in published.table for part in _table(version, table, by_name[table.source]))


def above_ideal() -> Html:
    """How many published efficiencies cannot be, whatever the rounding."""
    published = read_published()
    sentences = []
    for source in published.source:
        tables = (table for table in published.table if table.source == source.name)
        found = [one for table in tables for one in figures.implied(table)]
        number = f"{len(found)} implied {'efficiency' if len(found) == 1 else 'efficiencies'}"
        as_printed, surely = sum(value > 1 for value, _ in found), sum(low > 1 for _, (low, _) in found)
        sentences.append(
            f"{source.author}: {number}, of which {as_printed} above 100 % as printed, {surely} even after the worst"
            " rounding."
        )
    return bullets(sentences)


def named_source(source: Source) -> Html:
    return link(source.title, source.url) if source.url else Html(markup=f"<em>{source.title}</em>", text=source.title)


def _table(version: Version, table: Table, source: Source, *, depth: int = 3) -> list[Displayed]:
    ours = cases_beside(version, table)
    parts: list[Displayed] = [
        heading(f"{table.title} ({source.author.partition(',')[0]})", depth=depth),
        paragraph(f"{source.terms} CPU: {table.cpu or 'not stated'}."),
        paragraph(table.remark),
    ]
    if table.ours and ours:
        parts.append(
            paragraph(
                f"Ours: {table.ours}, on other GPUs and CPUs (page Machines). Where RL-Games prints the three figures,"
                " ours are what it printed."
            )
        )
    elif table.series:
        parts.append(paragraph(f"This version has no case of the series {table.series} to compare it with."))
    if several := [(series, found) for series, found in ours if len({row.world_size for row in found}) > 1]:
        parts.append(efficiencies(table, several, source))
    is_hours = table.rows[0].hours is not None
    headings = ["Measured by", "GPUs"] + (
        ["Hours of training"] if is_hours else ["Step FPS", "Step and inference FPS", "Total FPS"]
    )
    rows: list[Sequence[Cell]] = [_their_row(table, row, source) for row in table.rows]
    rows += [_our_row(series, row, is_hours=is_hours) for series, found in ours for row in found]
    parts.append(html_table([*headings, "Efficiency", "Range"], rows, label=f"{table.title}, {source.name}"))
    return parts + _tuned(version, table, source)


def efficiencies(table: Table, ours: Sequence[tuple[Campaign, Sequence[CaseRow]]], source: Source) -> Figure:
    """Draw the share of ideal speed that both keep."""
    theirs = source.author.partition(",")[0]
    points = [
        Point(label=theirs, x=row.gpus, y=found[0], spread=found[1])
        for row in table.rows
        if (found := figures.efficiency(table, row)) is not None
    ]
    points += [
        Point(
            label=f"labscale, {series.title or 'this report'}",
            x=case.world_size,
            y=case.scaling_efficiency,
            interval=case.scaling_efficiency_interval,
        )
        for series, rows in ours
        for case in rows
        if case.scaling_efficiency is not None
    ]
    campaigns = [series for series, _ in ours]
    texts = Texts(
        title="Share of ideal speed kept, total frames per second",
        note="Other hardware, other versions and other physics: only the shape of the curves can be compared.",
        source=f"{theirs}, {source.date}; {source_of(*campaigns)}",
        x="GPUs",
        y="Efficiency of total FPS",
        spread="what rounding leaves open in theirs",
    )
    chart = speedup(points, texts, is_share=True)
    data = speedups([row for _, rows in ours for row in rows])
    return figure_of(campaigns[0], chart, f"published-{source.name}", data=data)


def _tuned(version: Version, table: Table, source: Source) -> list[Displayed]:
    """The most that tuning brings, in words: only cases as they come stand in the table of what others published."""
    found, theirs = most_tuned(version, table), figures.most_frames(table)
    if not found or theirs is None:
        return []
    ours = [
        f"{count(one.fps)} with {counted(one.gpus, 'GPU')} ({one.variant}, {counted(one.rounds, 'round')})"
        f" where the settings as shipped make {count(one.as_shipped_fps)}"
        for one in found
    ]
    gpus, their_fps = theirs
    words = (
        f"Tuned through the libraries' own settings, labscale's most with {table.rl_library} is {', and '.join(ours)}"
        f" total FPS; that of {source.author.partition(',')[0]} is {count(their_fps)} with"
        f" {counted(gpus, 'GPU')}, as shipped, so it compares with the settings as shipped. Tuned cases are no part of"
        " the figure and the table above, and frames are not learning:"
    )
    return [paragraph(words), bullets([link("What each setting brings", "settings.html")])]


def _their_row(table: Table, row: Row, source: Source) -> list[str]:
    found = figures.efficiency(table, row)
    cells = [count(row.rates[kind].value) if kind in row.rates else MISSING for kind in figures.KINDS]
    if row.hours is not None:
        cells = [f"{row.hours:g}"]
    is_exact = found is None or found[1][1] - found[1][0] < EXACT
    reach = _range(found[1], "rounding") if found and not is_exact else MISSING
    return [source.author.partition(",")[0], str(row.gpus), *cells, percent(found and found[0]), reach]


def _our_row(series: Campaign, row: CaseRow, *, is_hours: bool) -> list[str]:
    interval = row.scaling_efficiency_interval
    reach = _range(interval, "rounds") if interval else _too_few(series, row)
    cells = [MISSING] if is_hours else [count(value) for value in fps_beside(series, row)]
    return [
        f"labscale, {series.title or 'this report'}",
        str(row.world_size),
        *cells,
        percent(row.scaling_efficiency),
        reach,
    ]


def _too_few(series: Campaign, row: CaseRow) -> str:
    """The rounds that leave an efficiency without an interval."""
    rounds = fewest_rounds(series, row)
    return MISSING if rounds is None else counted(rounds, "round")


def _range(interval: tuple[float, float], of_what: str) -> str:
    return f"{100 * interval[0]:.0f} to {100 * interval[1]:.0f} % ({of_what})"
