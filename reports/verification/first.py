"""Read this first: what is verified, in which order.

How a figure follows from samples is in ``runs`` and ``kinds``, which share no code with the report. How files are read,
and which figures there are, is shared. All else asks whether these samples can be true:

1. ``stored``: can a report read each file, has it the numbers of its samples, and is all there as planned?
2. ``samples``: do the samples of a rank fit each other, its case, its machine, and what the sampler saw?
3. ``rules``: blocks and their turns, curves, copies, overlaps, one machine, evidence, the log of runs, commits.
4. ``figures``: each row of ``figures.csv`` computed again by ``kinds`` from the table of ``runs``.
5. ``hashes``: is every file there as it was hashed, none missing, none extra?

No verifier can find a consistent invention: samples that nobody measured, made to fit in all of these respects.
``tests/reports/verification/test_forgeries.py`` lists what is found, and what is not.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import StringConstraints

from reports.verification import rules
from reports.verification.figures import FILE, check_figures
from reports.verification.finding import OR_LIST, Finding, Place
from reports.verification.hashes import check_hashes, is_version, read_hashes
from reports.verification.runs import Run
from reports.verification.stored import read_set
from suite.errors import MatrixError
from suite.files.toml_file import TomlTable, Tuple, read_toml
from suite.files.wording import counted
from suite.records.folders import PLAN_FILE, RUN_LOG, set_folders

WEAKNESSES: Final = "weaknesses.toml"
OF_A_SET: Final = (rules.check_blocks, rules.check_alike, rules.check_probes)
OF_A_PUBLISHED_SET: Final = (*OF_A_SET, rules.check_one_machine, rules.check_evidence)
OF_ALL_SETS: Final = (rules.check_copies, rules.check_learned, rules.check_overlaps)
OF_ALL_PUBLISHED_SETS: Final = (*OF_ALL_SETS, rules.check_commits, rules.check_episodes)

type Text = Annotated[str, StringConstraints(pattern=r"\S")]


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
    place, counts, weaknesses = Place(folder), Counter[str](), list[Finding]()
    with np.errstate(all="ignore"):  # what is not finite is no figure, and within no bounds
        for parent, paths in groupby(set_folders(folder), lambda path: path.parent):
            counts += _verify_group(place, parent, list(paths))
            weaknesses += _known_weaknesses(place, parent)
    differing = tuple(finding for finding in place.findings if finding not in weaknesses)
    return Verified(**counts, findings=differing, known_weaknesses=tuple(weaknesses))


def _verify_group(place: Place, parent: Path, folders: Sequence[Path]) -> Counter[str]:
    """Verify the sets of one folder, which is a version if ``place`` contains it and it has a ``report.toml``."""
    is_one, counts, runs, rejected = place.root == folders[0], Counter[str](), list[Run](), list[str]()
    is_published = is_version(parent) or (parent / WEAKNESSES).is_file()  # a version, or its files for download
    for folder in folders:
        of_set, wrong = read_set(own := place.at(folder))
        for rule in OF_A_PUBLISHED_SET if is_published else OF_A_SET:
            with own.as_far_as_possible():
                rule(own, [run for run in of_set if run.has_begun])
        with own.at(folder / RUN_LOG).as_far_as_possible() as log:
            rules.check_run_log(log, of_set)
        check_hashes(own)
        counts["cases"] += len({run.case_id for run in of_set})
        runs, rejected = [*runs, *of_set], [*rejected, *wrong]
    whole = place if is_one else place.at(parent)
    for rule in OF_ALL_PUBLISHED_SETS if is_published and not is_one else OF_ALL_SETS:
        with whole.as_far_as_possible():
            rule(whole, [run for run in runs if run.has_begun])
    if not is_one:
        if without := [folder for folder in folders if is_published and not (folder / PLAN_FILE).is_file()]:
            expected = "in each: without it nobody can tell whether a case was left out"
            whole.fault(PLAN_FILE, f"missing in {counted(len(without), 'set')}", expected, OR_LIST)
        with place.at(parent / FILE).as_far_as_possible() as own:
            counts["published_cases"] = check_figures(own, runs, rejected)
        if is_version(parent):
            check_hashes(whole)
    counts["rounds"] = len(runs)
    counts["samples"] = sum(column.size for run in runs for columns in run.columns for column in columns.values())
    counts["hashed_files"] = sum(len(read_hashes(path)) for path in (folders if is_one else [*folders, parent]))
    return counts


class Weakness(TomlTable):
    """A finding with the next step ``OR_LIST``: a table ``[[weakness]]`` of ``weaknesses.toml``, in its exact words."""

    where: Text  # below the version
    what: Text
    got: Text
    why: Text


class _Weaknesses(TomlTable):
    weakness: Tuple[Weakness] = ()


def read_weaknesses(version: Path) -> tuple[Weakness, ...]:
    """Return the list of a version; () without one. Raises MatrixError for a wrong file."""
    path = version / WEAKNESSES
    return read_toml(path).validate(_Weaknesses).weakness if path.is_file() else ()


def _known_weaknesses(place: Place, version: Path) -> Sequence[Finding]:
    """Return the findings that the list of a version has, and note what is wrong with the list."""
    own, step = place.at(version / WEAKNESSES), "Write the line anew as `verify` says the finding, or remove it."
    try:
        listed = {(place.at(version / own.where).where, own.what, own.got) for own in read_weaknesses(version)}
    except MatrixError as error:
        own.fault("the file", f"refused ({str(error).removeprefix(f'{own.path}: ')})", "a list of weaknesses", step)
        return ()
    findings = {(finding.where, finding.what, finding.got): finding for finding in place.findings}
    for key in sorted(listed - findings.keys()) if version.is_relative_to(place.root) else ():  # else a set of it alone
        what = f"the weakness of {key[0]}, {key[1]!r} {key[2]!r},"
        own.fault(what, "not found any more", "found in these words", step)
    return [finding for key, finding in findings.items() if key in listed and finding.next_step == OR_LIST]
