"""The command ``verify``: computes the figures of every case again from raw samples, and says what differs."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.verification import first
from reports.verification.first import WEAKNESSES, Verified
from reports.verification.hashes import SIGNATURE, SUMS, is_of_hashes, is_version, write_hashes
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.options.command_line import Parser, results_path
from suite.records.folders import CASES, set_folders

RESULTS = ROOT / "reports" / "results"


def verify_folder(folder: Path) -> Verified:
    """Verify all sets at or below ``folder``. Raises UsageError if there is none, ReportError if one is unreadable."""
    with told_when_unreadable(folder):
        if set_folders(folder):
            return first.verify(folder)
    raise UsageError(
        f"{folder} has no folder `{CASES}` at or below it, so there is nothing to verify."
        " Name a folder that `nox -s bench` wrote, or one below reports/results."
    )


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every finding is a known weakness; else the code of ResultsDiffer, or of what kept it from that."""
    parser = Parser(
        prog="nox -s verify --",
        description="Compute the figures of every configuration again from the raw samples of every rank, and check"
        f" schema, hashes and completeness. Exit code 0: nothing differs but the known weaknesses of a version;"
        f" {ResultsDiffer.exit_code}: something does.",
    )
    where = "a set of results, a version, or a folder of them (default: reports/results)"
    parser.add_argument("folder", type=results_path, nargs="?", default=RESULTS, metavar="DIR", help=where)
    write = f"write {SUMS} of every set and every version, if there is no other fault"
    parser.add_argument("--write-hashes", action="store_true", help=write)
    parser.add_argument("--json", action="store_true", help="print what was checked and what differs as JSON")
    options = parser.read(arguments)
    if options.write_hashes:
        _write_hashes(options.folder)
    verified = verify_folder(options.folder)
    if options.json:
        print(json.dumps(asdict(verified), indent=1))
    else:
        _show(verified)
    if verified.findings:
        raise ResultsDiffer(f"{options.folder} is not what its samples say: see each line above for what to do.")
    return 0


def _show(verified: Verified) -> None:
    print(*verified.findings, sep="\n", end="\n" if verified.findings else "")
    if not verified.hashed_files:
        print(
            f"Without {SUMS} nothing shows whether the samples themselves are as they were measured: figures were"
            " compared with them, and they with each other. --write-hashes makes it."
        )
    if verified.known_weaknesses:
        known = counted(len(verified.known_weaknesses), "known weakness")
        print(f"{known}, listed in {WEAKNESSES} with the reason.")
    published = counted(verified.published_cases, "published configuration")
    read = f"{counted(verified.cases, 'configuration')}, {counted(verified.rounds, 'run')}"
    read += f", {verified.samples:,} samples"
    read += f", figures of {published}" if verified.published_cases else ""
    faults = f"{counted(len(verified.findings), 'fault')} found" if verified.findings else "nothing differs"
    print(f"{read} and {counted(verified.hashed_files, 'hashed file')}: {faults}.")


def _write_hashes(folder: Path) -> None:
    """Write the hashes of sets and versions that have no other fault; raise ResultsDiffer with every fault of them."""
    if faults := [str(finding) for finding in verify_folder(folder).findings if not is_of_hashes(finding)]:
        listed = "\n".join(faults)
        raise ResultsDiffer(f"{listed}\nNo hashes were written for {folder}: what is wrong must not be sealed.")
    sets = set_folders(folder)
    versions = {path.parent for path in sets if is_version(path.parent) and path != folder}
    for own in (*sets, *sorted(versions)):
        if (own / SIGNATURE).is_file():
            print(f"{own / SIGNATURE} is of the hashes before: sign again, or remove it.", file=sys.stderr)
        with told_when_unwritable(own / SUMS, StoreError, "or write the hashes into a copy of the folder"):
            print(write_hashes(own))
