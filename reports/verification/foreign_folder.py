"""A folder of imported bundles. They hold no samples to compute from, so each is checked in itself and by its hash."""

from pathlib import Path
from typing import Final

from reports.foreign.foreign_set import bundle_paths, cases_of, refuse_repeated
from reports.foreign.reading import ImportedRun, read_run
from reports.verification.finding import RESTORE, Finding
from reports.verification.hashes import below, check_hashes, read_hashes
from reports.verification.set_folder import Verified
from suite.errors import ForeignResultError
from suite.records.folders import BUNDLES

_IMPORT_AGAIN: Final = "Take the file anew from whoever wrote it, and import it again with `nox -s import`."


def verify_foreign(folder: Path, *, root: Path) -> Verified:
    """``root``: what paths are said relative to."""
    findings: list[Finding] = []
    runs: list[ImportedRun] = []
    for path in bundle_paths(folder):
        try:
            runs.append(read_run(path))
        except ForeignResultError as error:
            text = str(error).replace(str(path), "the file")
            findings.append(_finding(below(path, root), "the file", f"not valid ({text})", "a bundle", _IMPORT_AGAIN))
    if not runs and not findings:
        findings.append(_finding(below(folder / BUNDLES, root), "the folder", "empty", "a bundle in it", RESTORE))
    try:
        refuse_repeated(runs)
    except ForeignResultError as error:
        findings.append(_finding(below(folder / BUNDLES, root), "a run", f"there twice ({error})", "one file", RESTORE))
    return Verified(
        cases=0,
        rounds=0,
        samples=0,
        hashed_files=len(read_hashes(folder)),
        imported_cases=len(cases_of(runs)),
        imported_runs=len(runs),
        findings=(*findings, *check_hashes(folder, root, is_sealed=True)),
    )


def _finding(where: str, what: str, got: str, expected: str, next_step: str) -> Finding:
    return Finding(where=where, what=what, got=got, expected=expected, next_step=next_step)
