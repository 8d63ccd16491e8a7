"""Read this first: what is verified, in which order.

This package shares no code with what made the figures. It imports the standard library and itself, reads raw JSON, and
has formulas of its own. Whoever wants to know how a published figure follows from samples reads ``formulas``,
``case_file`` and ``published``, some 600 lines. Everything else asks whether these samples can be true. The order:

1. ``shape``: is each file a document of the format, with known words alone?
2. ``rank_samples``: do the samples of a rank fit each other: lengths, order, parts, marks, the library's own clock?
3. ``round_facts``, ``telemetry``: does everything else of a round fit its case, its machine, its samples, its energy?
4. ``formulas``: seconds per iteration of a process, means, intervals; ``case_file``: does the document
   have these numbers?
5. ``set_folder``: pairs with Isaac Lab's benchmark; is everything there that was planned? ``run_log``: is every run
   there that ended, as it ended?
6. ``across_rounds``: copies, overlapping clocks, several machines, missing evidence, over a set and over a version.
7. ``published``: speed-ups, efficiencies, intervals and verdicts; ``case_figures``: what was measured besides; both
   against ``figures.json`` and ``configurations.csv`` by ``published_files``; ``readme``: the figures of README.md.
8. ``hashes``, ``signature``: is every file there as it was hashed, none missing, none extra, and who signed?
9. ``weaknesses``: which findings are known and listed; every other finding is a fault.

No verifier can find a consistent invention: samples that nobody measured, made to fit in all of these respects.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from reports.verification.figures.published_files import check_figures
from reports.verification.finding import OR_LIST, Finding, as_far_as_possible
from reports.verification.hashes import check_hashes, is_version, read_hashes
from reports.verification.readme import check_readme
from reports.verification.run_log import check_run_log
from reports.verification.samples.across_rounds import check_copies, check_environment, check_evidence, check_overlaps
from reports.verification.samples.case_file import CASES
from reports.verification.samples.set_folder import PLAN, StoredSet, check_asked, read_set
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
    if is_published:
        findings += [finding for one in sets for finding in _check_published(one)]
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
    runs = [run for one in sets for run in one.runs]
    where = "." if root == paths[0] else parent.relative_to(root).as_posix()
    findings += as_far_as_possible(where, check_copies(runs))
    if root == paths[0]:  # one set alone, of a version or not
        faults, known = without_known(parent, findings, root=root)
        return replace(verified, findings=faults, known_weaknesses=known)
    findings += as_far_as_possible(where, check_overlaps(where, runs, between_sets=True))
    number, differing = check_figures(parent, sets, root=root)
    verified, findings = replace(verified, published_cases=number), [*findings, *differing]
    if is_published:
        findings += _check_plans(where, sets)
    sentences: tuple[str, ...] = ()
    if is_version(parent):
        sentence, wrong = check_signature(parent, root=root)
        sentences = (sentence,)
        findings += [*check_readme(parent, sets), *check_hashes(parent, root=root), *wrong]
    faults, known = without_known(parent, findings, root=root)
    hashed_files = verified.hashed_files + len(read_hashes(parent))
    return replace(verified, findings=faults, known_weaknesses=known, hashed_files=hashed_files, signatures=sentences)


def _check_published(one: StoredSet) -> Iterator[Finding]:
    """Check what only a published set must be: of one machine, with all evidence, and with the rounds asked for."""
    yield from as_far_as_possible(one.name, check_environment(one.name, one.runs))
    yield from as_far_as_possible(one.name, check_evidence(one.name, one.cases))
    yield from check_asked(one)


def _check_plans(where: str, sets: Sequence[StoredSet]) -> Iterator[Finding]:
    without = [one.name for one in sets if not one.has_plan]
    if without:
        got = f"missing in {len(without)} of {len(sets)} sets"
        expected = "in each: without it nobody can tell whether a case was left out"
        yield Finding(where=where, what=PLAN, got=got, expected=expected, next_step=OR_LIST)


def _raise(error: OSError) -> None:
    raise error
