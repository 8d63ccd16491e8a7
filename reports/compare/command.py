"""`nox -s compare -- BEFORE AFTER`: whether one set of results is slower than another, for people and for CI."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from reports.compare.changes import changes
from reports.compare.comparison import AXES, DEFAULT_THRESHOLD, Comparison, compare, compare_packages
from reports.compare.text import markdown, show
from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.version import Version, read_version
from suite.errors import UsageError
from suite.options.command_line import Parser, any_path, any_text, missing_results, tables_console
from suite.options.types import percent


def main(arguments: Sequence[str]) -> int:
    """0: nothing is slower; 1: something is, or fails now; 2: incomparable; others as in ``suite.errors``."""
    options = parser().read(arguments)
    if options.changed:
        return _write_changes(options)
    if options.out is not None and not (options.json or options.markdown):
        raise UsageError(
            f"--out {options.out} needs a format for the file: allowed are --json and --markdown. Add one."
        )
    comparison = _comparison(options)
    if options.json:
        _write(json.dumps(asdict(comparison) | {"exit_code": comparison.exit_code}, indent=1) + "\n", options.out)
    elif options.markdown:
        _write(markdown(comparison), options.out)
    else:
        show(comparison, tables_console())
    return comparison.exit_code


def _comparison(options: argparse.Namespace) -> Comparison:
    threshold = options.threshold / 100
    if options.after is not None:
        sides = [_read(name, path) for name, path in (("BEFORE", options.before), ("AFTER", options.after))]
        return compare(*sides, threshold=threshold, across=options.across)
    if not options.across:
        raise UsageError(
            f"Got one folder, {options.before}. Give a second one to compare it with, or --across NAME, such as"
            " versions.newton, to compare the configurations of this folder that differ in that."
        )
    return compare_packages(_read("BEFORE", options.before), threshold=threshold, across=options.across)


def _read(name: str, folder: Path) -> Version:
    if why := missing_results(folder):  # with --changed, BEFORE may be missing
        raise UsageError(f"argument {name}: {why}")
    with told_when_unreadable(folder):
        return read_version(folder, name=folder.name)


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
        text = changes(options.before, options.after, threshold=options.threshold / 100)
    _write(text, options.out)
    return 0


def _write(text: str, out: Path | None) -> None:
    """Raises ReportError for a file that cannot be written: the exit code 1 of a traceback says "slower"."""
    if out is None:
        sys.stdout.write(text)
        return
    with told_when_unwritable(out):
        out.write_text(text, encoding="utf-8")


def parser() -> Parser:
    parser = Parser(
        prog="nox -s compare --",
        description="Compare two folders of results. Exit code 0: nothing is slower; 1: a configuration is slower, or"
        " fails now; 2: configurations that cannot be compared.",
    )
    parser.add_argument("before", type=any_path, metavar="BEFORE", help="folder of results: a campaign or a version")
    parser.add_argument(
        "after",
        type=any_path,
        nargs="?",
        metavar="AFTER",
        help="the same later; without it, configurations of BEFORE that differ in what --across names are compared",
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
        help="BEFORE and AFTER are folders of versions: compare each campaign that AFTER adds or changes with the one"
        " it replaces, or with that of its name in the newest earlier version; always ends with 0",
    )
    return parser
