"""What can be taken away: the stored results as they are in git, and tables made of them."""

import hashlib
import html

from reports.data.columns import RUN_COLUMNS
from reports.display.html import (
    MISSING,
    Cell,
    Html,
    answer_of_page,
    bullets,
    fold,
    heading,
    html_table,
    link,
    paragraph,
    together,
)
from reports.export.downloads import DATA_FOLDER, TABLES, StoredFiles, env_check_files, stored_files
from reports.sets.version import ResultSet, Version
from reports.verification.hashes import SUMS
from suite.files.input_file import read_input
from suite.files.wording import counted
from suite.records.folders import RUN_LOG


def answer(version: Version) -> Html:
    """Say how many files of sets there are, and how large they are."""
    stored = stored_files(version)
    files = [path for own in stored for path in own.files.values()]
    size_mb = sum(path.stat().st_size for path in files) / 1e6
    return answer_of_page(
        f"{counted(len(files), 'file')} ({size_mb:.0f} MB) have every stored sample of {counted(len(stored), 'set')}."
        " One command computes their figures again, and three add the results of your machine."
    )


def downloads() -> Html:
    """Links to the tables of all runs and figures."""
    links = [link(name, f"{DATA_FOLDER}/{name}") for name in TABLES]
    rest = "have every published number and a row a run. The samples are in the files of the sets below."
    addresses = ", ".join(address.markup for address in links)
    return Html(
        markup=f"<p><strong>Download</strong>: {addresses} {html.escape(rest)}</p>",
        text=f"Download: {', '.join(TABLES)} {rest}",
    )


def listing(version: Version) -> Html:
    """One row a set, with a link to the list of its files; whose it is, where some are not the project's own."""
    rows: list[list[Cell]] = [
        [stored.title, result_set.campaign.where, contributor(result_set) or "labscale", *_files(stored)]
        for result_set, stored in zip(version.sets, stored_files(version), strict=True)
    ]
    beside = env_check_files(version)
    if beside.files:
        rows.append([beside.title, MISSING, "labscale", *_files(beside)])
    headings = ["Set", "Measured on", "Contributed by", "Files", "List of files"]
    if not any(result_set.contributor for result_set in version.sets):
        headings, rows = [*headings[:2], *headings[3:]], [[*row[:2], *row[3:]] for row in rows]
    return html_table(headings, rows, label="Files of every set")


def _files(stored: StoredFiles) -> list[Cell]:
    sums = link(stored.name, f"{DATA_FOLDER}/{stored.name}/{SUMS}") if stored.sums else MISSING
    return [str(len(stored.files)), sums]


def contributor(result_set: ResultSet) -> Html | None:
    """Name, link and citation of who measured; None if it is the project itself."""
    own = result_set.contributor
    if own is None:
        return None
    shown = link(own.name, own.link) if own.link else Html(markup=html.escape(own.name), text=own.name)
    rest = f". To cite: {own.citation}" if own.citation else ""
    return Html(markup=shown.markup + html.escape(rest), text=shown.text + rest)


def columns() -> Html:
    """List the columns of the table of runs."""
    rows = ([column.name, column.unit, column.kind.__name__, column.meaning] for column in RUN_COLUMNS)
    headings = ["Column", "Unit", "Type", "Meaning"]
    return fold("Columns of runs", [html_table(headings, rows, label="Columns of runs")])


def less_evidence(version: Version) -> Html:
    """List the sets that lack evidence; nothing without one."""
    archived = [own for own in version.sets if own.role == "archive"]
    if not archived:
        return together(())
    text = (
        "These campaigns ran before labscale stored all that it stores today. Their times can be computed again from"
        " their samples. Evidence of the work behind the times is missing, so no speed-up rests on them; the known"
        " weaknesses on the page Method and limits say what is missing."
    )
    sets = (f"{own.title}: {own.campaign.where}." for own in archived)
    return together(
        [heading("Sets with less evidence", depth=2, anchor="less-evidence"), paragraph(text), bullets(sets)]
    )


def run_logs(version: Version) -> Html:
    """Every set that has a run log, with who witnessed it; in a sentence, how many have none."""
    rows: list[list[Cell]] = []
    for result_set in version.sets:
        path = result_set.folder / RUN_LOG
        lines = read_input(path).splitlines(keepends=True) if path.is_file() else []
        if lines:
            witness = link(result_set.witness, result_set.witness) if result_set.witness else "not witnessed"
            late = sum(b'"late": true' in line for line in lines)
            digest = hashlib.sha256(lines[-1]).hexdigest()
            shown = Html(markup=f"<code>{digest}</code>", text=digest)
            rows.append([result_set.title or "Results", witness, shown, f"{len(lines)}", f"{late}"])
    parts: list[Html] = []
    if rows:
        headings = ["Set", "Witness", "Hash of the last line", "Runs", "Late"]
        parts.append(html_table(headings, rows, label="Run logs"))
    if without := len(version.sets) - len(rows):
        parts.append(paragraph(f"No run log, so not witnessed: {counted(without, 'set')}."))
    return together(parts)


def citation(version: Version) -> Html:
    """How to cite this version: one sentence, and BibTeX; nothing of one campaign."""
    if version.is_campaign:
        return together(())
    title = f"The labscale authors: How Isaac Lab training scales, report {version.name}."
    fields = {
        "author": "{The labscale authors}",
        "title": f"How {{Isaac Lab}} training scales, report {version.name}",
        "version": version.name,
        "year": version.name.partition(".")[0],
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    bibtex = ",\n".join([f"@misc{{labscale-{version.name}", *lines]) + "\n}"
    shown = Html(
        markup=f"<p>{html.escape(title)} Text and data: CC-BY-4.0. Code: BSD-3-Clause.</p>"
        f'<details><summary>BibTeX</summary><pre tabindex="0">{html.escape(bibtex)}</pre></details>',
        text=f"{title}\n{bibtex}",
    )
    return together([heading("Cite", depth=2, anchor="cite"), shown])
