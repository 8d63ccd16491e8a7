"""Published figures of others, with the cases of this report that come nearest."""

from collections.abc import Sequence
from typing import Final

import reports.topics.others.published as figures
from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import variant_of
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import KIND_COLUMNS
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
from reports.sets.version import Version
from reports.topics.others.published import Row, Source, Table, read_published
from reports.topics.others.published_chart import efficiencies
from suite.files.wording import counted

EXACT: Final = 0.005  # of an efficiency: rounding that leaves less open is not worth a range


def answer() -> Html:
    """How many efficiencies the sources imply, and how many of them cannot be."""
    published = read_published()
    found = [interval for table in published.table for _, interval in figures.implied(table)]
    surely = sum(low > 1 for low, _ in found)
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


def of_series(version: Version, name: str) -> Html:
    """The tables that stand beside one series; nothing where there are none."""
    published = read_published()
    by_name = {source.name: source for source in published.source}
    return together(
        part
        for table in published.table
        if table.series == name
        for part in _table(version, table, by_name[table.source], depth=4)
    )


def above_ideal() -> Html:
    """How many published efficiencies cannot be, whatever the rounding."""
    published = read_published()
    sentences = []
    for source in published.source:
        found = [pair for table in published.table if table.source == source.name for pair in figures.implied(table)]
        surely = sum(interval[0] > 1 for _, interval in found)
        number = f"{len(found)} implied {'efficiency' if len(found) == 1 else 'efficiencies'}"
        sentences.append(
            f"{source.author}: {number}, of which {sum(value > 1 for value, _ in found)} above"
            f" 100 % as printed, {surely} even after the worst rounding."
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
    if ours:
        parts.append(efficiencies(table, ours, source))
    is_hours = table.rows[0].hours is not None
    headings = ["Measured by", "GPUs"] + (
        ["Hours of training"] if is_hours else ["Step FPS", "Step and inference FPS", "Total FPS"]
    )
    rows: list[Sequence[Cell]] = [_their_row(table, row, source) for row in table.rows]
    rows += [_our_row(series, row, is_hours=is_hours) for series, found in ours for row in found]
    parts.append(html_table([*headings, "Efficiency", "Range"], rows, label=f"{table.title}, {source.name}"))
    return parts + _tuned(version, table, source)


def _tuned(version: Version, table: Table, source: Source) -> list[Displayed]:
    """The most that tuning brings, in words: only cases as they come stand in the table of what others published."""
    most: dict[int, tuple[float, str, float]] = {}  # GPUs -> frames per second, of what, and as shipped on that host
    for series in version.series(table.tuned) if table.tuned else ():
        cases = {result.case.case_id: result.case for result in series.results}
        shipped = {
            row.world_size: row.total_fps
            for row in series.rows
            if (cases[row.case_id].division, row.rl_library) == ("closed", table.rl_library) and row.total_fps
        }
        for row in series.rows:
            case = cases[row.case_id]
            is_like = (case.division, case.rl_library, case.device) == ("open", table.rl_library, "cuda")
            if is_like and row.total_fps is not None and case.world_size in shipped:
                said = f"({variant_of(case)}, {counted(row.rounds_completed, 'round')})"
                found = (row.total_fps, said, shipped[case.world_size])
                most[case.world_size] = max(most.get(case.world_size, found), found)
    gpus, their_fps = max(((row.gpus, row.total.value) for row in table.rows if row.total), default=(0, None))
    ours = [
        f"{count(fps)} with {counted(gpus, 'GPU')} {said} where the settings as shipped make {count(as_shipped)}"
        for gpus, (fps, said, as_shipped) in sorted(most.items())
    ]
    if not ours or their_fps is None:
        return []
    words = (
        f"Tuned through the libraries' own settings, labscale's most with {table.rl_library} is {', and '.join(ours)}"
        f" total FPS; that of {source.author.partition(',')[0]} is {count(their_fps)} with"
        f" {counted(gpus, 'GPU')}, as shipped, so it compares with the settings as shipped. Tuned cases are no part of"
        " the figure and the table above, and frames are not learning:"
    )
    return [paragraph(words), bullets([link("What each change does to the reward", "division.html")])]


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
    """The rounds of the case or of its baseline, whose fewer leave its efficiency without an interval."""
    if row.scaling_efficiency is None or row.world_size == row.baseline_world_size:
        return MISSING
    bases = [one for one in series.rows if (one.curve, one.world_size) == (row.curve, row.baseline_world_size)]
    return counted(min(one.rounds_completed for one in [row, *bases]), "round")


def fps_beside(series: Campaign, row: CaseRow) -> list[float | None]:
    """What RL-Games printed itself where it did, else by labscale's clock."""
    found = series.inside[row.case_id]
    measured = {kind: values.median for kind, values in found.fps.items()}
    return [(found.printed_fps or measured).get(kind) for kind in KIND_COLUMNS]


def _range(interval: tuple[float, float], of_what: str) -> str:
    return f"{100 * interval[0]:.0f} to {100 * interval[1]:.0f} % ({of_what})"


def cases_beside(version: Version, table: Table) -> list[tuple[Campaign, list[CaseRow]]]:
    """The completed cases of the series on one node with the table's library, by set.

    Without sets whose efficiency is of another number of GPUs than the table's: it is 1 where the table's is less.
    """
    if table.series is None:
        return []
    fewest = min(row.gpus for row in table.rows)
    found = []
    for series in version.series(table.series):
        rows = [
            row
            for row in sorted(series.rows, key=lambda row: row.world_size)
            if row.rl_library == table.rl_library and row.nnodes == 1 and row.device == "cuda" and row.total_fps
            if row.baseline_world_size in (None, fewest)
        ]
        if rows:
            found.append((series, rows))
    return found
