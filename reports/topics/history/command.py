"""`nox -s compare -- BEFORE AFTER`: whether one set of results is slower than another, for people and for CI."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.topics.history import markdown as comparison_markdown
from reports.topics.history.changed_sets import changed_sets
from reports.topics.history.comparison import (
    AXES,
    BETWEEN_CAMPAIGNS,
    DEFAULT_THRESHOLD,
    MAX_NAMED,
    CaseComparison,
    Comparison,
    compare,
)
from reports.topics.history.within import pairs_across
from suite.errors import UsageError
from suite.options.command_line import Parser, any_path, any_text, exit_code_of, is_missing, nothing_at, tables_console
from suite.options.types import percent
from suite.records.store import load_results

_STYLES = {"regression": "red", "failed": "red", "incomparable": "magenta", "improvement": "green"}
MISSING = "n/a"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing got slower; 1: something did, or fails now; 2: incomparable; others as in ``suite.errors``."""
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    options = parser().read(arguments)
    return _write_changes(options) if options.changed else _write_comparison(options)


def _write_comparison(options: argparse.Namespace) -> int:
    if options.out is not None and not (options.json or options.markdown):
        raise UsageError(
            f"--out {options.out} needs a format for the file: allowed are --json and --markdown. Add one."
        )
    for name, folder in (("BEFORE", options.before), ("AFTER", options.after)):  # with --changed, BEFORE may be missing
        if folder is not None and is_missing(folder):
            raise UsageError(f"argument {name}: {nothing_at(folder)}")
    threshold = options.threshold / 100
    if options.after is None:
        comparison = _within(options.before, options.across, threshold)
    else:
        before, after = (load_results(folder) for folder in (options.before, options.after))
        comparison = compare(before, after, threshold=threshold, across=options.across)
    if options.json:
        _write(json.dumps(asdict(comparison) | {"exit_code": comparison.exit_code}, indent=1) + "\n", options.out)
    elif options.markdown:
        _write(comparison_markdown.comparison(comparison), options.out)
    else:
        show(comparison, tables_console())
    return comparison.exit_code


def _within(folder: Path, across: Sequence[str], threshold: float) -> Comparison:
    """Compare the cases of one campaign that differ in what ``across`` names.

    Raises:
        UsageError: it names nothing, or there are no such cases.
    """
    if not across:
        raise UsageError(
            f"Got one folder, {folder}. Give a second one to compare it with, or --across NAME, such as"
            " versions.newton, to compare the cases of this folder that differ in that."
        )
    results = load_results(folder)
    pairs = pairs_across(results, across)
    return compare(
        [before for before, _ in pairs],
        [after for _, after in pairs],
        threshold=threshold,
        across=across,
    )


def _write_changes(options: argparse.Namespace) -> int:
    """A change to results is told, not judged: what is slower may be so for a reason that its text gives."""
    if not options.markdown or options.across:
        raise UsageError("--changed needs --markdown, and does not take --across. Leave it out.")
    if options.after is None:
        raise UsageError(f"--changed needs BEFORE and AFTER, got {options.before} alone. Add the other folder.")
    with told_when_unreadable(options.after):
        if not options.after.is_dir():  # BEFORE may be missing: then nothing had results yet
            raise UsageError(
                f"There is no folder {options.after}. AFTER is a folder of versions: name reports/results."
            )
        found = changed_sets(options.before, options.after, threshold=options.threshold / 100)
    _write(comparison_markdown.changes(found), options.out)
    return 0


def _write(text: str, out: Path | None) -> None:
    """Raises ReportError for a file that cannot be written: the exit code 1 of a traceback says "a regression"."""
    if out is None:
        sys.stdout.write(text)
        return
    with told_when_unwritable(out):
        out.write_text(text, encoding="utf-8")


def parser() -> Parser:
    parser = Parser(
        prog="nox -s compare --",
        description="Compare two sets of results. Exit code 0: nothing got slower; 1: a regression, or a case that"
        " fails now; 2: cases that cannot be compared.",
    )
    parser.add_argument("before", type=any_path, metavar="BEFORE", help="folder of results")
    parser.add_argument(
        "after",
        type=any_path,
        nargs="?",
        metavar="AFTER",
        help="folder of results; without it, the cases of BEFORE that differ in what --across names are compared",
    )
    parser.add_argument(
        "--threshold",
        type=percent,
        default=100 * DEFAULT_THRESHOLD,
        metavar="PERCENT",
        help="smallest change that counts (default: %(default)g)",
    )
    parser.add_argument(
        "--across",
        type=any_text,
        action="append",
        default=[],
        metavar="NAME",
        help=f"a difference that the comparison is about, may be repeated: {', '.join(AXES)}",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything, as JSON")
    form.add_argument("--markdown", action="store_true", help="for a comment on GitHub")
    parser.add_argument(
        "--out", type=any_path, metavar="FILE", help="write JSON or Markdown there instead of printing it"
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="BEFORE and AFTER are folders of versions: compare each set that AFTER adds or changes with the one it"
        " replaces, or with that of its name in the newest earlier version; always ends with 0",
    )
    return parser


def show(comparison: Comparison, console: Console) -> None:
    """Print the cases as a table, then the reason of each verdict, its differences, and what only one side has."""
    figures = ("Before in s", "After in s", "Change", "Interval", "Rounds", "Verdict")
    columns = [Column("Case", overflow="fold"), *(Column(name, no_wrap=True) for name in figures)]
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for case in comparison.cases:
        table.add_row(*_cells(case), Text(case.word, style=_STYLES.get(case.word, "")))
    console.print(table)
    for case in comparison.cases:
        _print_plain(console, f"{case.case_id}: {case.word}: {case.reason}")
        for item in case.differences[:MAX_NAMED]:
            _print_plain(console, f"  {item.name}: {item.before} before, {item.after} after")
        if len(case.differences) > MAX_NAMED:
            _print_plain(console, f"  and {len(case.differences) - MAX_NAMED} more: --json has all")
        for item in case.across:
            _print_plain(console, f"  as declared, {item.name}: {item.before} before, {item.after} after")
    for title, names in (("Only before", comparison.only_before), ("Only after", comparison.only_after)):
        if names:
            _print_plain(console, f"{title}: {', '.join(names)}")
    if not comparison.cases:
        _print_plain(console, "No case is in both sets, so nothing was compared.")
    rule = f"Change is of the time, above 0 is slower. Threshold {comparison.threshold:.1%}."
    _print_plain(console, f"{rule} {BETWEEN_CAMPAIGNS}")


def _cells(case: CaseComparison) -> tuple[str, ...]:
    times = [MISSING if time_s is None else f"{time_s:.4g}" for time_s in (case.before_time_s, case.after_time_s)]
    change = MISSING if case.change is None else f"{case.change.value:+.1%}"
    interval = MISSING
    if case.change is not None and case.change.interval is not None:
        interval = "{:+.1%} to {:+.1%}".format(*case.change.interval)
    return (case.case_id, *times, change, interval, f"{case.before_rounds}, {case.after_rounds}")


def _print_plain(console: Console, text: str) -> None:
    """One line whatever the width, so that it can be searched and copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
