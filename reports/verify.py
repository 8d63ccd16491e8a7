"""Compute every published figure again from the raw samples of the ranks, and say what differs.

``python -m reports.verify [DIR] [--write-hashes] [--json]``: DIR is a set of results, a version, or a folder of either.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from reports.file_errors import told_when_unreadable
from reports.foreign.foreign_set import is_foreign
from reports.verification.foreign_folder import verify_foreign
from reports.verification.hashes import SUMS, write_hashes
from reports.verification.set_folder import Verified, verify_set
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.options.command_line import Parser, exit_code_of, results_path
from suite.records import folders as result_folders
from suite.records.folders import BUNDLES, CASES


def verify(folder: Path) -> Verified:
    """All sets at or below ``folder``, as one. Raises UsageError when there is none."""
    found = [_verify_one(one, root=folder) for one in set_folders(folder)]
    return Verified(
        cases=sum(one.cases for one in found),
        rounds=sum(one.rounds for one in found),
        samples=sum(one.samples for one in found),
        hashed_files=sum(one.hashed_files for one in found),
        imported_cases=sum(one.imported_cases for one in found),
        imported_runs=sum(one.imported_runs for one in found),
        findings=tuple(finding for one in found for finding in one.findings),
    )


def set_folders(folder: Path) -> list[Path]:
    """Raises UsageError when there is none, and StoreError for a folder that cannot be read."""
    found = result_folders.set_folders(folder)
    if not found:
        raise UsageError(
            f"{folder} has no folder `{CASES}` or `{BUNDLES}` at or below it, so there is nothing to verify."
            " Name a folder that `nox -s bench` wrote, or one below reports/results."
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing differs; otherwise the exit code of ResultsDiffer, or of what kept it from looking."""
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(
        prog="nox -s verify --",
        description="Compute every published figure again from the raw samples of every rank, and check schema, hashes"
        f" and completeness. Exit code 0: nothing differs; {ResultsDiffer.exit_code}: something does.",
    )
    parser.add_argument(
        "folder",
        type=results_path,
        nargs="?",
        default=ROOT / "reports" / "results",
        metavar="DIR",
        help="a set of results, a version, or a folder of them (default: reports/results)",
    )
    parser.add_argument("--write-hashes", action="store_true", help="write SHA256SUMS of every set that has no fault")
    parser.add_argument("--json", action="store_true", help="print what was checked and what differs as JSON")
    options = parser.read(arguments)
    if options.write_hashes:
        for folder in set_folders(options.folder):
            print(_hash(folder))
    verified = verify(options.folder)
    show(verified, as_json=options.json)
    if verified.findings:
        raise ResultsDiffer(f"{options.folder} is not what its samples say: see each line above for what to do.")
    return 0


def show(verified: Verified, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(verified), indent=1))
        return
    for finding in verified.findings:
        print(finding)
    imported = ""
    if verified.imported_runs:
        runs, cases = counted(verified.imported_runs, "imported run"), counted(verified.imported_cases, "case")
        imported = f"; {runs} in {cases}, without samples"
    if not verified.hashed_files:
        print(
            f"Without {SUMS} nothing tells whether the samples themselves are as they were measured: figures were held"
            " to them, and they to each other. --write-hashes makes it."
        )
    found = "nothing differs" if not verified.findings else f"{counted(len(verified.findings), 'fault')} found"
    print(
        f"{counted(verified.cases, 'case')}, {counted(verified.rounds, 'round')}, {verified.samples:,} samples and"
        f" {counted(verified.hashed_files, 'hashed file')}{imported}: {found}."
    )


def _verify_one(folder: Path, *, root: Path) -> Verified:
    with told_when_unreadable(folder):
        return verify_foreign(folder, root=root) if is_foreign(folder) else verify_set(folder, root=root)


def _hash(folder: Path) -> Path:
    """Hashes are of what is right: a set with another fault gets none.

    Raises ResultsDiffer, with every fault, and StoreError when the file cannot be written.
    """
    faults = [
        finding
        for finding in _verify_one(folder, root=folder).findings
        if "SHA" not in finding.what + finding.got and not finding.where.endswith(SUMS)
    ]
    if faults:
        told = "\n".join(map(str, faults))
        raise ResultsDiffer(f"{told}\nNo hashes were written for {folder}: what is wrong must not be sealed.")
    try:
        return write_hashes(folder)
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder / SUMS} cannot be written: {error.strerror}. Check space and permissions, or"
            " write the hashes into a copy of the folder."
        ) from error


if __name__ == "__main__":
    sys.exit(main())
