"""What these numbers cannot say: rounds that failed, cases that were never run, intervals that are missing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from reports.analysis.curves import is_emulated
from reports.display import series_tables
from reports.display.html import Html, answer_of_page, bullets, html_table, paragraph, together
from reports.display.per_set import under_titles
from reports.sets.version import ResultSet, Version
from reports.verification.weaknesses import Weakness, read_weaknesses
from suite.files.wording import are, counted
from suite.schema.record import OVERFLOW_CHECK, Case
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL

_EMULATED: Final = " on nodes emulated on one host"


def answer(version: Version) -> Html:
    """Say how many cases have no interval, and how many runs did not complete."""
    known = version.totals
    without = known.cases - _with_interval(version)
    failed = sum(len(one.campaign.failures) for one in version.sets)
    return answer_of_page(
        f"{without or 'None'} of {counted(known.cases, 'case')} {are(without or 1)} without an interval,"
        f" and {counted(failed, 'run') if failed else 'no run'} did not complete ({counted(known.runs, 'run')} did)."
    )


def _with_interval(version: Version) -> int:
    """Return how many cases with a completed run have an interval."""
    rows = (row for one in version.sets for row in one.campaign.rows if row.rounds_completed)
    return sum(row.iteration_time_interval_s is not None for row in rows)


def failures(version: Version) -> Html:
    failed = [one for one in version.sets if one.campaign.failures]
    if not failed:
        return paragraph("Every round of every case completed.")
    return under_titles(failed, _failures, are_named=version.must_name_all_sets)


def _failures(one: ResultSet) -> Html:
    label = f"Rounds that did not complete, {one.title or 'this campaign'}"
    return series_tables.failures(one.campaign.failures, label=label)


def weaknesses(version: Version) -> Html:
    """What `nox -s verify` finds in the results and nobody can repair, with why it stands."""
    listed = read_weaknesses(version.folder)
    if not listed:
        return paragraph("No weakness is known: verify finds nothing, or everything that it finds is a fault.")
    alike: dict[tuple[str, str], list[Weakness]] = {}
    for weakness in listed:
        alike.setdefault((weakness.what, weakness.why), []).append(weakness)
    rows = ([what, "; ".join(map(_where, found)), why] for (what, why), found in alike.items())
    return html_table(["What", "Found", "Why it stands"], rows, label="Known weaknesses", num_text_columns=3)


def _where(weakness: Weakness) -> str:
    where = "the version" if weakness.where == "." else weakness.where
    return f"{where}: {weakness.got.partition(', as ')[0]}"


def not_run(version: Version, planned: Sequence[Case], matrix: str) -> Html:
    """Cases of ``matrix`` that no set of the version has, by series."""
    results = [result for one in version.sets for result in one.campaign.results if result.completed]
    measured = {result.case.case_id for result in results}
    on_nodes = {result.case.case_id for result in results if not is_emulated(result)}
    missing: dict[str, list[Case]] = {}
    for case in (case for case in planned if case.case_id not in measured):
        missing.setdefault(case.series, []).append(case)
    number = sum(map(len, missing.values()))
    of_them = sum(case.case_id in measured - on_nodes for case in planned)
    emulated = f", {of_them} of them{_EMULATED} alone" if of_them else ""
    sentence = (
        f"Of the {len(planned)} cases of the matrix {matrix} of this labscale {len(planned) - number} have a"
        f" completed round here{emulated}; {number} were not measured."
    )
    rows = ([name, *_missing(cases)] for name, cases in missing.items())
    table = html_table(
        ["Series", "Not measured", "Topologies (nodes x ranks)", "Libraries"],
        rows,
        label=f"Cases of {matrix} that were not measured",
        num_text_columns=4,
    )
    return together([paragraph(sentence), *([table] if missing else [])])


def uncertain(version: Version) -> Html:
    """How many cases have an interval, telemetry, and checks of the machine: what every number lacks."""
    known = version.totals
    records = [record for one in version.sets for record in one.campaign.completed]
    counts = Counter(row.rounds_completed for one in version.sets for row in one.campaign.rows if row.rounds_completed)
    by_rounds = ", ".join(f"{number} with {count}" for count, number in sorted(counts.items()))
    emulated = [record for record in records if record.transport and record.transport.emulated]

    def share(of_them: Iterable[object], text: str) -> str:
        return f"{sum(map(bool, of_them))} of {counted(known.runs, 'round')} {text}."

    fewest = f"An interval needs {MIN_ROUNDS_FOR_INTERVAL}, and is narrow only with more."
    return bullets(
        [
            f"Completed rounds a case: {by_rounds}. {fewest}",
            f"{_with_interval(version)} of {counted(known.cases, 'case')} with an interval.",
            share((record.workload for record in records), f"stored a fingerprint of the work{_without_any(version)}"),
            share((record.telemetry is not None for record in records), "have power and memory sampled beside them"),
            share((record.environment.checks for record in records), "have what env_check said of their machine"),
            share(
                (record.case.assets == "official" for record in records),
                "used NVIDIA's own assets; the others used stand-ins",
            ),
            share(
                (record.case.nnodes > 1 for record in records),
                f"ran on more than one node{_emulated(len(emulated))}",
            ),
            _overflow(version),
        ]
    )


def _without_any(version: Version) -> str:
    """Name the sets of which no round stored a fingerprint."""
    without = [one for one in version.sets if one.campaign.completed]
    without = [one for one in without if not any(record.workload for record in one.campaign.completed)]
    return f"; none of {'; '.join(one.title or 'this campaign' for one in without)}" if without else ""


def _emulated(emulated: int) -> str:
    """How many had parts of one host for nodes, which is no network."""
    return f", {emulated} of them{_EMULATED}" if emulated else ""


def _overflow(version: Version) -> str:
    """Say in which runs MuJoCo Warp was asked whether it dropped contacts or constraints, and what it answered."""
    records = [record for one in version.sets for result in one.campaign.results for record in result.rounds]
    asked: list[tuple[str, bool]] = []  # case -> whether it dropped nothing
    for record in records:
        checks = [check for rank in record.ranks for check in rank.validity if check.name == OVERFLOW_CHECK]
        if checks:
            case = f"{record.case.task} with {record.case.num_envs:,} environments on a GPU"
            asked.append((case, all(check.verdict == "ok" for check in checks)))
    question = "Whether MuJoCo Warp dropped contacts or constraints because a buffer was full"
    if not asked:
        return f"{question} was not looked at in any run: all are older than this check."
    full = sorted({case for case, is_ok in asked if not is_ok})
    sound = ", ".join(sorted({case for case, is_ok in asked if is_ok} - {*full}))
    answers = [f"It did in {', '.join(full)}."] if full else []
    answers += [f"It did not in {sound}."] if sound else []
    number = counted(len(asked), "run")
    return f"{question} was looked at in {number}; the others are older than this check. {' '.join(answers)}"


def _missing(cases: Sequence[Case]) -> list[str]:
    return [
        str(len(cases)),
        ", ".join(dict.fromkeys(case.topology for case in cases)),
        ", ".join(dict.fromkeys(case.rl_library for case in cases)),
    ]
