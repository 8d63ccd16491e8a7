"""How sure the figures are and what limits them: coverage of intervals, turns, failed runs, what was not measured."""

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from reports.data.frames import KEYS
from reports.display.html import (
    Cell,
    Html,
    answer_of_page,
    bullets,
    html_table,
    measured,
    paragraph,
    runs_in,
    span,
    together,
)
from reports.figures import coverage
from reports.figures.compare import Row
from reports.figures.tables import rows_by_id, runs_of, tables
from reports.sets.planned import MATRIX, planned_cases
from reports.sets.version import Version
from reports.verification.finding import Place
from reports.verification.first import read_weaknesses
from suite.errors import ReportError
from suite.files.wording import counted, joined
from suite.schema.record import OVERFLOW_CHECK
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.stopping_rule import is_cut_off

CHECKS: Final[Mapping[str, str]] = {
    "halves": "Halves of the runs of one configuration",
    "repeats": "A baseline against its repeat",
    "turns": "Every other turn of the same runs",
    "blocks": "Half of the blocks against the other half",
    "simulated": "Simulated runs in few blocks",
    "simulated_noisy": "The same, one configuration much noisier",
}
COVERAGE: Final = ("ratios", "contain", "half_width", "unpaired_contain", "unpaired_half_width")  # columns of figures


def answer() -> Html:
    """Say how often intervals were right, and what has none."""
    contain = [row for name, row in coverage.stored().items() if name.endswith("/contain")]
    return answer_of_page(
        "A ratio is about as sure as its interval says: where the true ratio is known,"
        f" {span(contain)} of the 95 % intervals contain it."
        f" With fewer than {MIN_ROUNDS_FOR_INTERVAL} runs there is no interval. Runs that failed are listed."
    )


def intervals() -> Html:
    """Show of every check how often intervals contain the truth, and those of unpaired ratios beside them."""
    checked = coverage.stored()
    rows = [
        [title, *(measured(checked[f"coverage/{check}/{name}"]) for name in COVERAGE)]
        for check, title in CHECKS.items()
        if f"coverage/{check}/ratios" in checked
    ]
    return html_table(["Check", *COVERAGE], rows, label="How often intervals contain the truth")


def turns(version: Version) -> Html:
    """Say how long an iteration takes in turns, as a part of the time alone, over all campaigns and in each."""
    figures, name = rows_by_id(version), "iteration_s_in_turns"
    if f"total/{name}" not in figures:
        return paragraph("No configuration of this report was measured both ways.")
    total = figures[f"total/{name}"]
    sentence = f"An iteration in turns takes {measured(total)} times as long as alone: {total['status']}."
    own = [(title, figures[f"{folder}/{name}"]) for folder, title in _titles(version) if f"{folder}/{name}" in figures]
    rows = [[title, measured(row), row["status"], runs_in(row)] for title, row in own]
    headings = ["Campaign", "iteration_s_in_turns", "How sure", "Runs"]
    table = html_table(headings, rows, label="Runs in turns and alone")
    return together([paragraph(sentence), table])


# --- what limits the results ---


def limits(version: Version) -> Html:
    """Show what the results of this version lack."""
    official = any(
        record.case.assets == "official" for result_set in version.sets for record in result_set.campaign.completed
    )
    slowed = rows_by_id(version).get("total/slowed_core_looks")
    return bullets(
        [
            *([f"{measured(slowed)} of the looks at a CPU core found it slowed."] if slowed else []),
            f"{'Some runs' if official else 'No run'} had NVIDIA's own assets; offline assets are partly stand-ins.",
            _overflows(version),
            _not_measured(version),
        ]
    )


def _overflows(version: Version) -> str:
    """Say in how many runs MuJoCo Warp was asked whether it dropped contacts or constraints, and in how many it did."""
    verdicts: dict[tuple[object, ...], set[str]] = {}
    for check in tables(version)["checks"].iter_rows(named=True):
        if check["check"] == OVERFLOW_CHECK:
            verdicts.setdefault(tuple(check[name] for name in KEYS), set()).add(check["verdict"])
    dropped = sum("failure" in verdict for verdict in verdicts.values())
    answer = f"; it did in {dropped or 'none'} of them" if verdicts else ""
    return (
        "Whether MuJoCo Warp dropped contacts or constraints for want of buffer space was asked in"
        f" {len(verdicts)} of {counted(len(runs_of(version).every), 'run')}{answer}."
    )


def _not_measured(version: Version) -> str:
    """Name the series of the largest matrix with the configurations that no run completed of."""
    runs = list(runs_of(version).completed.iter_rows(named=True))
    done = {row["configuration"] for row in runs}
    alone = done - {row["configuration"] for row in runs if not row["is_emulated"]}
    planned = planned_cases()
    missing = Counter(case.series for case in planned if case.case_id not in done)
    number = sum(case.case_id in alone for case in planned)
    names = f", of {', '.join(missing)}" if missing else ""
    emulated = f" {counted(number, 'configuration')} ran on simulated nodes alone." if number else ""
    return (
        f"{sum(missing.values())} of {counted(len(planned), 'configuration')} of the matrix {MATRIX} were not measured"
        f"{names}.{emulated}"
    )


def unfinished(version: Version) -> str:
    """Say what a campaign that was cut off, or still runs, did not measure; empty for a finished one and a version."""
    if not version.is_campaign:
        return ""
    (result_set,) = version.sets
    planned = sum(result_set.plan["configurations"].values()) if result_set.plan else 0
    ended = sum(len(result.rounds) for result in result_set.every)
    parts = [result_set.how_many_are_not_stored] if result_set.not_stored else []
    cut_off = [result for result in result_set.every if is_cut_off(result.ended_because)]
    if cut_off:
        lack = "lacks" if len(cut_off) == 1 else "lack"
        parts.append(f"{counted(len(cut_off), 'configuration')} {lack} runs")
    if parts and ended < planned:  # a rule of precision may have added more than were planned
        parts.insert(0, f"{ended} of {planned} planned runs ended")
    next_step = "The same nox -s bench goes on where it stopped, if the machine has what is needed."
    return f"The campaign is unfinished: {joined(parts)}. {next_step}" if parts else ""


def failures(version: Version) -> Html:
    """Show the runs that failed, those with one message together; and say why others were skipped."""
    titles, skipped = dict(_titles(version)), []
    alike: dict[tuple[str, str], list[Row]] = {}
    for row in (row for row in runs_of(version).every.iter_rows(named=True) if not row["is_alone"]):
        if row["outcome"] == "skipped":
            skipped.append(row["reason"])
        elif row["outcome"] != "completed":
            message = (row["reason"] or "no message").partition(" (")[0]
            alike.setdefault((row["outcome"], message), []).append(row)
    rows: list[list[Cell]] = [
        [
            "; ".join(dict.fromkeys(row["configuration"] for row in own)),
            outcome,
            Html(markup=f"<code>{html.escape(message)}</code>", text=message),
            str(len(own)),
            "; ".join(dict.fromkeys(titles[row["set"]] for row in own)),
        ]
        for (outcome, message), own in alike.items()
    ]
    parts = [paragraph("No run failed.")]
    if rows:
        headings = ["Configuration", "Outcome", "Message", "Runs", "Campaign"]
        parts = [html_table(headings, rows, label="Runs that failed")]
    if skipped:
        parts.append(paragraph(f"Skipped, {counted(len(skipped), 'run')}: {'; '.join(dict.fromkeys(skipped))}."))
    return together(parts)


def weaknesses(version: Version) -> Html:
    """Show what `nox -s verify` finds in the results and nobody can repair, with why it stands."""
    alike: dict[tuple[str, str], list[str]] = {}
    place = Place(version.folder)
    listed = read_weaknesses(place)
    if place.findings:
        raise ReportError(str(place.findings[0]))
    for weakness in listed:
        where = "the version" if weakness.where == "." else weakness.where
        places = alike.setdefault((weakness.what, weakness.why), [])
        places.append(f"{where}: {weakness.got.partition(', as ')[0]}")
    if not alike:
        return paragraph("None is known.")
    rows = ([what, "; ".join(where), why] for (what, why), where in alike.items())
    return html_table(["What", "Found", "Why it stands"], rows, label="Known weaknesses")


def _titles(version: Version) -> Iterator[tuple[str, str]]:
    for result_set in version.sets:
        yield result_set.name or "results", result_set.title or "This campaign"
