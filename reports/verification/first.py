"""Read this first: what is verified, in which order.

This package shares no code with what made the figures: it imports numpy, the standard library and itself. How a figure
follows from samples is in ``runs``, ``kinds`` and ``figures``. All else asks whether these samples can be true:

1. ``shape`` and ``stored``: is each file of the format, with the numbers of its samples, and is all there as planned?
2. ``samples``: do the samples of a rank fit each other, its case, its machine, and what the sampler saw?
3. ``rules``: blocks and their turns, curves, copies, overlaps, one machine, evidence, the log of runs, commits.
4. ``figures``: each row of ``figures.csv`` computed again by ``kinds`` from the table of ``runs``.
5. ``hashes``: is every file there as it was hashed, none missing, none extra?

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

import numpy as np

from reports.verification.figures import FILE, check_figures
from reports.verification.finding import OR_LIST, Finding, Place
from reports.verification.hashes import PLAN, check_hashes, is_version, read_bytes, read_hashes, set_folders
from reports.verification.rules import check_commits, check_copies, check_overlaps, check_published, check_set
from reports.verification.stored import read_set

WEAKNESSES: Final = "weaknesses.toml"


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


def verify(folder: Path) -> Verified:
    """Verify every set at or below a folder, and every version: a folder of sets with a ``report.toml``."""
    groups = groupby(set_folders(folder), lambda path: path.parent)
    with np.errstate(all="ignore"):  # what is not finite is no figure, and within no bounds
        parts = [_verify_group(parent, list(paths), folder) for parent, paths in groups] or [Verified()]
    names = [field.name for field in fields(Verified)]
    return Verified(**{name: reduce(operator.add, (getattr(part, name) for part in parts)) for name in names})


def _verify_group(parent: Path, folders: Sequence[Path], root: Path) -> Verified:
    """Verify the sets of one folder, which is a version if ``root`` contains it and it has a ``report.toml``."""
    place, is_one = Place(root), root == folders[0]
    whole = place if is_one else place.at(parent)
    is_published = is_version(parent) or (parent / WEAKNESSES).is_file()  # a version, or its files for download
    sets = [read_set(place, folder) for folder in folders]
    runs = [run for cases, _ in sets for case in cases for run in case]
    begun = [run for run in runs if run.has_begun]
    for folder, (cases, _) in zip(folders, sets, strict=True):
        check_set(place, folder, cases)
        if is_published:
            check_published(place.at(folder), cases)
        check_hashes(place, folder)
    with whole.as_far_as_possible():
        check_copies(whole, begun)
    number = 0
    if not is_one:
        check_overlaps(whole, begun, between_sets=True)
        with place.at(parent / FILE).as_far_as_possible() as own:
            number = check_figures(own, runs, [name for _, rejected in sets for name in rejected])
    if is_published and not is_one:
        if without := [path for path in folders if not (path / PLAN).is_file()]:
            expected = "in each: without it nobody can tell whether a case was left out"
            whole.fault(PLAN, f"missing in {len(without)} of {len(sets)} sets", expected, OR_LIST)
        check_commits(whole, parent, begun)
    if is_version(parent) and not is_one:
        check_hashes(place, parent)
    known = _known_weaknesses(place, parent)
    return Verified(
        cases=sum(len(cases) for cases, _ in sets),
        rounds=len(runs),
        samples=sum(len(column) for run in runs for columns in run.columns for column in columns.values()),
        hashed_files=sum(len(read_hashes(path)) for path in (folders if is_one else [*folders, parent])),
        findings=tuple(finding for finding in place.findings if finding not in known),
        published_cases=number,
        known_weaknesses=known,
    )


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
    """Return the list of a version; () without one. Raise ValueError, which says what is wrong, if it is not valid."""
    path, names = version / WEAKNESSES, {field.name for field in fields(Weakness)}
    try:
        entries = tomllib.loads(read_bytes(path).decode()).get("weakness", []) if path.is_file() else []
    except ValueError:
        raise ValueError("no TOML, as UTF-8") from None
    for index, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        texts = [text.strip() for text in entry.values() if type(text) is str] if type(entry) is dict else []
        if len(texts) != len(names) or entry.keys() != names or "" in texts:
            raise ValueError(f"weakness {index + 1} needs {', '.join(sorted(names))}, each a text")
    return tuple(Weakness(**entry) for entry in entries)


def _known_weaknesses(place: Place, version: Path) -> tuple[Finding, ...]:
    """Return the findings that the list of a version has, and note what is wrong with the list."""
    own, step = place.at(version / WEAKNESSES), "Write the line anew as `verify` says the finding, or remove it."
    try:
        listed = Counter((place.at(version / one.where).where, one.what, one.got) for one in read_weaknesses(version))
    except ValueError as error:
        own.fault("the file", f"not valid ({error})", "a list of weaknesses", step)
        return ()
    findings = {(finding.where, finding.what, finding.got): finding for finding in place.findings}
    for key, number in listed.items() if version.is_relative_to(place.root) else ():  # else a set of it alone
        if key not in findings or number > 1:
            got = f"listed {number} times" if key in findings else "not found any more"
            own.fault(f"the weakness of {key[0]}, {key[1]!r} {key[2]!r},", got, "listed once, in these words", step)
    return tuple(one for key, one in findings.items() if key in listed and one.next_step == OR_LIST)
