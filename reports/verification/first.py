"""Read this first: what is verified, in which order.

This package shares no code with what made the figures. It imports numpy, the standard library and itself, reads raw
JSON, and has formulas of its own. Whoever wants to know how a published figure follows from samples reads ``runs``,
``kinds`` and ``figures``, some 560 lines. Everything else asks whether these samples can be true. The order:

1. ``shape``: is each file a document of the format?
2. ``rank``: do the samples of a rank fit each other: lengths, order, parts, marks, turns, the library's own clock?
3. ``run``, ``telemetry``: does everything else of a run fit its case, its machine, its samples and its readings?
4. ``stored``: does a document have the numbers of its samples, and is everything there that was planned? ``run_log``:
   is every run there that ended, as it ended?
5. ``together``, ``commits``: blocks and their turns, curves, copies, overlaps, one machine, evidence, the commits.
6. ``runs``: a table of all completed runs; ``kinds``: the formulas of figures; ``figures``: each row of ``figures.csv``
   computed again by its declaration; ``readme``: the figures of README.md.
7. ``hashes``, ``signature``: is every file there as it was hashed, none missing, none extra, and who signed?
8. ``weaknesses``: which findings are known and listed; every other finding is a fault.

No verifier can find a consistent invention: samples that nobody measured, made to fit in all of these respects.
``tests/reports/verification/test_forgeries.py`` lists what is found, and what is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from reports.verification.commits import check_commits
from reports.verification.figures import check_figures
from reports.verification.finding import OR_LIST, Finding
from reports.verification.hashes import check_hashes, is_version, read_hashes
from reports.verification.readme import check_readme
from reports.verification.run_log import check_run_log
from reports.verification.samples.stored import CASES, PLAN, StoredSet, read_set
from reports.verification.samples.together import check_copies, check_overlaps, check_published, check_set, table_of
from reports.verification.signature import check_signature
from reports.verification.weaknesses import WEAKNESSES, without_known


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What was verified, and what of it differs."""

    cases: int = 0
    rounds: int = 0
    samples: int = 0
    hashed_files: int = 0
    findings: tuple[Finding, ...] = ()
    published_cases: int = 0  # whose figures in files were compared
    known_weaknesses: tuple[Finding, ...] = ()
    signatures: tuple[str, ...] = ()  # a sentence for each version


def set_folders(folder: Path) -> list[Path]:
    """Return every set at or below a folder. A set within a set repeats its cases as a download, and is left out."""
    found = []
    for at, folders, _ in folder.walk(on_error=_raise):
        if CASES in folders:
            found.append(at)
            folders.clear()
    return sorted(found)


def verify(folder: Path) -> Verified:
    """Verify every set at or below a folder, and every version: a folder of sets with a ``report.toml``."""
    groups = {parent: list(paths) for parent, paths in groupby(set_folders(folder), _parent)}
    found = [_verify_group(parent, paths, folder) for parent, paths in groups.items()]
    return Verified(
        cases=sum(one.cases for one in found),
        rounds=sum(one.rounds for one in found),
        samples=sum(one.samples for one in found),
        hashed_files=sum(one.hashed_files for one in found),
        findings=tuple(finding for one in found for finding in one.findings),
        published_cases=sum(one.published_cases for one in found),
        known_weaknesses=tuple(finding for one in found for finding in one.known_weaknesses),
        signatures=tuple(sentence for one in found for sentence in one.signatures),
    )


def _parent(path: Path) -> Path:
    return path.parent


def _verify_group(parent: Path, paths: Sequence[Path], root: Path) -> Verified:
    """Verify the sets of one folder, which is a version if ``root`` contains it and it has a ``report.toml``."""
    sets = [read_set(path, root=root) for path in paths]
    findings = [finding for one in sets for finding in one.findings]
    findings += [finding for one in sets for finding in check_run_log(one)]
    is_published = is_version(parent) or (parent / WEAKNESSES).is_file()  # a version, or its files for download
    tables = {one.name: table_of(one) for one in sets}
    for one in sets:
        findings += check_set(one.name, tables[one.name])
        findings += check_published(one, tables[one.name]) if is_published else ()
    for path in paths:
        findings += check_hashes(path, root=root)
    records = [record for one in sets for stored in one.cases for record in stored.rounds]
    columns = [column for record in records for rank in record["ranks"] for column in rank["samples"].values()]
    verified = Verified(
        cases=sum(len(one.cases) for one in sets),
        rounds=len(records),
        samples=sum(map(len, columns)),
        hashed_files=sum(len(read_hashes(path)) for path in paths),
    )
    runs = [run for table in tables.values() for run in table]
    where = "." if root == paths[0] else parent.relative_to(root).as_posix()
    findings += check_copies(where, runs)
    if root == paths[0]:  # one set alone, of a version or not
        faults, known = without_known(parent, findings, root=root)
        return replace(verified, findings=faults, known_weaknesses=known)
    findings += check_overlaps(where, runs, between_sets=True)
    number, differing = check_figures(parent, sets, root=root)
    verified, findings = replace(verified, published_cases=number), [*findings, *differing]
    if is_published:
        findings += [*_check_plans(where, sets), *check_commits(where, parent, runs)]
    sentences: tuple[str, ...] = ()
    if is_version(parent):
        sentence, wrong = check_signature(parent, root=root)
        sentences = (sentence,)
        findings += [*check_readme(parent, sets), *check_hashes(parent, root=root), *wrong]
    faults, known = without_known(parent, findings, root=root)
    hashed_files = verified.hashed_files + len(read_hashes(parent))
    return replace(verified, findings=faults, known_weaknesses=known, hashed_files=hashed_files, signatures=sentences)


def _check_plans(where: str, sets: Sequence[StoredSet]) -> Iterator[Finding]:
    without = [one.name for one in sets if not one.has_plan]
    if without:
        got = f"missing in {len(without)} of {len(sets)} sets"
        expected = "in each: without it nobody can tell whether a case was left out"
        yield Finding(where=where, what=PLAN, got=got, expected=expected, next_step=OR_LIST)


def _raise(error: OSError) -> None:
    raise error
