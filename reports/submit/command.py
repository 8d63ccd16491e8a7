"""`nox -s submit -- RESULTS`: check the results of a campaign, add them to a version, and say what is left to do.

The first thing that fails ends it, and nothing was written then.
"""

import argparse
import contextlib
import fcntl
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.submit import pull_request
from reports.submit.placing import NAME, THIS_MONTH, VERSION, Target, built, put_in_place, target_of
from reports.submit.privacy import Published, published, refuse_private
from reports.submit.source import Source, read_source
from reports.verification.command import verify_folder
from reports.verification.finding import OR_LIST
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.options.command_line import Parser, any_path, any_text, results_path

TEXT_FILE: Final = "pull-request.md"  # in the campaign's folder, which git ignores
INTO: Final = ROOT / "reports" / "results"


def main(arguments: Sequence[str]) -> int:
    options = parser().read(arguments)
    if options.link and not options.contributed_by:
        raise UsageError(f"--link {options.link}: only with --contributed-by, the name of who measured. Add it.")
    if not options.into.is_dir():
        raise UsageError(f"--into {options.into} is no folder. Name the one that has a folder for each version.")
    with _alone_in(options.into):
        return _submit(options)


def _submit(options: argparse.Namespace) -> int:
    with told_when_unreadable(options.results):
        source = read_source(options.results)
        asked = {
            name: getattr(options, name) for name in ("into", "version", "name", "title", "contributed_by", "link")
        }
        target = target_of(source.place, **asked)
        warnings = pull_request.warnings(source)
        for warning in warnings:
            print(f"Warning: {warning}")
        _require_verified(source.folder, but_for=OR_LIST)  # the version may list it
        public = published(source.files)
        refuse_private(source.folder, public.content)
    text = pull_request.text(source, target, warnings)
    told = told_when_unwritable(target.version, StoreError, "and run the same command again: nothing was submitted")
    with told, built(source.folder, public.content, target) as version:
        _require_verified(version)
        _publish(source, target, version, text)
    _show(source, target, text, public)
    return 0


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait for another `submit` into this folder: each copies a version, changes the copy, and swaps the two."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # NFS and Lustre may have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_verified(folder: Path, *, but_for: str | None = None) -> None:
    """Raise ResultsDiffer, with every finding but those with the next step ``but_for``."""
    findings = [finding for finding in verify_folder(folder).findings if finding.next_step != but_for]
    if findings:
        listed = "\n".join(map(str, findings))
        raise ResultsDiffer(
            f"{listed}\n{folder.name} is not what its samples say, so nothing was submitted. If the runs are as they"
            " were measured and a finding can neither be repaired nor listed, open an issue *A new result* and attach"
            " the folder."
        )


def _publish(source: Source, target: Target, version: Path, text: str) -> None:
    """Write the text, then move the version to its place; the text goes away again if that fails."""
    path = source.folder / TEXT_FILE
    path.write_text(text, encoding="utf-8")
    try:
        put_in_place(version, target.version)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _show(source: Source, target: Target, text: str, public: Published) -> None:
    size_kb = sum(map(len, public.content.values())) / 1e3
    add, commit = shlex.quote(str(target.version)), shlex.quote(str(source.folder / TEXT_FILE))
    print(f"\nAdded {target.folder}: {counted(len(source.files), 'file')}, {size_kb:.0f} kB.")
    print(f"{pull_request.runs(source)}.\n")
    print("Texts in it, which become public:", *sorted(public.texts), sep="\n  ")
    if public.replaced:
        print(
            f"{counted(public.replaced, 'text')} had a word that labscale does not know: the fault word is published."
        )
    print(f"\nThe text of the pull request, also in {source.folder / TEXT_FILE}:\n\n{text}")
    print(f"Left to do: git add {add} && git commit --file {commit}")


def parser() -> Parser:
    parser = Parser(
        prog="nox -s submit --",
        description="Check the results of a finished campaign, add them to a version as a set, and write the text of a"
        " pull request. Nothing is written if a check fails.",
    )
    parser.add_argument("results", type=results_path, metavar="RESULTS", help="the --out of `bench`, e.g. runs/full")
    parser.add_argument(
        "--version",
        type=_version,
        metavar="YEAR.MONTH",
        help=f"the version to add to (default: the newest; {THIS_MONTH}: this month's)",
    )
    parser.add_argument("--name", type=_name, help="folder of the set (default: GPUs and start, h200x4-20261122-0828)")
    parser.add_argument("--title", type=any_text, metavar="TEXT", help="default: GPUs, CPUs and day")
    parser.add_argument("--contributed-by", type=any_text, metavar="NAME", help="who measured, if not the project")
    parser.add_argument("--link", type=_link, metavar="URL", help="a page of who measured")
    parser.add_argument(
        "--into", type=any_path, default=INTO, metavar="DIR", help="the folder of versions (default: reports/results)"
    )
    return parser


def _version(given: str) -> str:
    if given != THIS_MONTH and not VERSION.fullmatch(given):
        allowed = f"year and month, such as 2026.12, or {THIS_MONTH}, which is this month's"
        raise argparse.ArgumentTypeError(f"got {given!r}, allowed are {allowed}")
    return given


def _name(given: str) -> str:
    if not NAME.fullmatch(given) or len(given) > 100:  # noqa: PLR2004 - file systems allow some more
        raise argparse.ArgumentTypeError(
            f"got {given!r}, allowed are letters, digits, dots, - and _, at most 100, a letter or digit first"
        )
    return given


def _link(given: str) -> str:
    if not given.startswith("https://") or any_text(given).split() != [given]:
        raise argparse.ArgumentTypeError(f"got {given!r}, allowed is an address that begins with https://")
    return given
