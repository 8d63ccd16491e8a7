"""Read this first: what is verified, in which order.

This package shares no code with what made the figures: it imports numpy, the standard library and itself. How a figure
follows from samples is in ``runs``, ``kinds`` and ``figures``. All else asks whether these samples can be true:

1. ``stored``: is each file of the format, with the numbers of its samples, and is all there that was planned?
2. ``samples``: do the samples of a rank fit each other, its case, its machine, and what the sampler saw?
3. ``history``: is every run there that ended, as it ended, and after the commit that it names?
4. ``together``: blocks and their turns, curves, copies, overlaps, one machine, evidence.
5. ``figures``: each row of ``figures.csv`` computed again by ``kinds`` from the table of ``runs``; README.md.
6. ``hashes``: is every file there as it was hashed, none missing, none extra, and who signed?

No verifier can find a consistent invention: samples that nobody measured, made to fit in all of these respects.
``tests/reports/verification/test_forgeries.py`` lists what is found, and what is not.
"""

import operator
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Final

from reports.verification.figures import FILE, check_figures, check_readme
from reports.verification.finding import OR_LIST, Finding, Place
from reports.verification.hashes import (
    PLAN,
    RUN_LOG,
    check_hashes,
    check_signature,
    is_version,
    read_bytes,
    read_hashes,
    set_folders,
)
from reports.verification.history import check_commits, check_run_log
from reports.verification.stored import read_set
from reports.verification.together import check_copies, check_overlaps, check_published, check_set

WEAKNESSES: Final = "weaknesses.toml"
_CORRECT: Final = "Correct the list: write the line anew as `verify` says the finding, or remove it."


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


def verify(folder: Path) -> Verified:
    """Verify every set at or below a folder, and every version: a folder of sets with a ``report.toml``."""
    groups = groupby(set_folders(folder), lambda path: path.parent)
    parts = [_verify_group(parent, list(paths), folder) for parent, paths in groups] or [Verified()]
    names = [field.name for field in fields(Verified)]
    return Verified(**{name: reduce(operator.add, (getattr(part, name) for part in parts)) for name in names})


def _verify_group(parent: Path, folders: Sequence[Path], root: Path) -> Verified:
    """Verify the sets of one folder, which is a version if ``root`` contains it and it has a ``report.toml``."""
    place, is_one = Place(root), root == folders[0]
    whole = place if is_one else place.at(parent)
    sets = [read_set(place, path) for path in folders]
    runs = [run for one in sets for run in one.runs]
    begun = [run for run in runs if run.has_begun]
    is_published = is_version(parent) or (parent / WEAKNESSES).is_file()  # a version, or its files for download
    for one in sets:
        with place.at(one.folder / RUN_LOG).as_far_as_possible() as log:
            check_run_log(log, one.folder, one.runs)
        own = [run for run in begun if run.set_name == one.folder.name]
        check_set(place.at(one.folder), own)
        if is_published:
            check_published(place.at(one.folder), one, own)
        check_hashes(place, one.folder)
    check_copies(whole, begun)
    number, sentences = 0, []
    if not is_one:
        check_overlaps(whole, begun, between_sets=True)
        number = check_figures(place.at(parent / FILE), sets)
    if is_published and not is_one:
        if without := [path for path in folders if not (path / PLAN).is_file()]:
            expected = "in each: without it nobody can tell whether a case was left out"
            whole.fault(PLAN, f"missing in {len(without)} of {len(sets)} sets", expected, OR_LIST)
        check_commits(whole, parent, begun)
    if is_version(parent) and not is_one:
        with place.as_far_as_possible():
            check_readme(place, parent, sets)
        check_hashes(place, parent)
        sentences = [check_signature(place, parent)]
    known = _known_weaknesses(place, parent)
    return Verified(
        cases=sum(len(one.cases) for one in sets),
        rounds=len(runs),
        samples=sum(len(column) for run in runs for columns in run.columns for column in columns.values()),
        hashed_files=sum(len(read_hashes(path)) for path in (folders if is_one else [*folders, parent])),
        findings=tuple(finding for finding in place.findings if finding not in known),
        published_cases=number,
        known_weaknesses=known,
        signatures=tuple(sentences),
    )


# --- known weaknesses ---


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """A finding that cannot be repaired: a table ``[[weakness]]`` of ``weaknesses.toml``, in the finding's exact words.

    Only findings about evidence can be listed, those whose next step is ``OR_LIST``: samples that contradict each other
    are always a fault, and so is a line that no longer fits a finding.
    """

    where: str  # below the version
    what: str
    got: str
    why: str


def read_weaknesses(version: Path) -> tuple[Weakness, ...]:
    """Return the list of a version; () without one. Raise ValueError if the file is not as described above."""
    path, names = version / WEAKNESSES, {field.name for field in fields(Weakness)}
    entries = tomllib.loads(read_bytes(path).decode()).get("weakness", []) if path.is_file() else []
    for index, entry in enumerate(entries):
        if entry.keys() != names or not all(isinstance(text, str) and text.strip() for text in entry.values()):
            raise ValueError(f"weakness {index + 1} needs {', '.join(sorted(names))}, each a text")
    return tuple(Weakness(**entry) for entry in entries)


def _known_weaknesses(place: Place, version: Path) -> tuple[Finding, ...]:
    """Return the findings that the list of a version has, and note what is wrong with the list."""
    own = place.at(version / WEAKNESSES)
    try:
        listed = Counter((place.at(version / one.where).where, one.what, one.got) for one in read_weaknesses(version))
    except ValueError as error:
        own.fault("the file", f"not valid ({error})", "a list of weaknesses", _CORRECT)
        return ()
    findings = {(finding.where, finding.what, finding.got): finding for finding in place.findings}
    for key, number in listed.items() if version.is_relative_to(place.root) else ():  # else a set of it alone
        if key not in findings or number > 1:
            got = f"listed {number} times" if key in findings else "not found any more"
            own.fault(f"the weakness of {key[0]}, {key[1]!r} {key[2]!r},", got, "listed once, in these words", _CORRECT)
    return tuple(one for key, one in findings.items() if key in listed and one.next_step == OR_LIST)
