"""The ``store`` command: make results of the rounds that a campaign finished before its machine was gone.

``bench`` stores a case with its last round, and goes on only where the campaign began. This stores what is there, on
any machine. Where the campaign can still go on, the same ``bench`` adds the missing rounds to what was stored.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from suite.campaign import identity_file as campaign_file
from suite.campaign import pair_files as pairs
from suite.campaign.ending import print_what_worked
from suite.campaign.folder import Folder, locked
from suite.campaign.packing import interference
from suite.campaign.tables import print_noise, print_rounds, print_summary
from suite.errors import CampaignError, StoreError
from suite.files.wording import counted
from suite.options.command_line import results_path
from suite.records import store
from suite.records.folders import json_files
from suite.records.worked import has_speeds
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics import aa_noise as a_a
from suite.statistics.stopping_rule import CUT_OFF, decide

RECORD: Final = "record.json"
UNTESTED: Final = "ran beside the interference test, which has not allowed it (`bench` goes on with it)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=results_path, metavar="DIR", help="the --out of `bench`, e.g. runs/full, with its raw/"
    )


def command(arguments: argparse.Namespace, console: Console) -> None:
    """Carry out ``store`` as ``add_arguments`` describes it."""
    results = store_finished(arguments.folder)
    if not has_speeds(results):
        folder = Folder(root=arguments.folder)
        print_what_worked(console, results, logs=lambda case, number: folder.run_dir(case, number) / "logs")
    else:
        print_summary(console, results)
        print_rounds(console, results)
        if twins := a_a.twin_pairs(results):
            print_noise(console, twins)
    left_out = {"have not ended": _unfinished(arguments.folder), UNTESTED: _untested(arguments.folder)}
    for why, paths in left_out.items():
        if paths:
            names = ", ".join(str(path.relative_to(arguments.folder)) for path in paths)
            console.print(f"Left out, as they {why}: {names}.", highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"Stored: {counted(len(results), 'case')}, {counted(sum(len(one.rounds) for one in results), 'round')}. "
        f"Their page: nox -s report -- {arguments.folder}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def store_finished(root: Path) -> list[CaseResult]:
    """Store every case of which a round has ended, with the rounds that have; return all cases that are stored.

    A case that is stored with these rounds already stays as it is. Rounds of the interference test belong to a decision
    that the campaign takes (``packing.json``), and are left alone, as are those beside them before it is taken.

    Raises:
        StoreError: nobody may look, no round that counts has ended, or a record lies where another belongs.
        CampaignError: another process uses the folder, or nobody can tell whose it is.
    """
    try:
        has_raw = (root / "raw").is_dir()
    except OSError as error:
        raise StoreError(f"{root} cannot be read: {error.strerror}. Check the path and its permissions.") from error
    if not has_raw:
        raise StoreError(f"{root} has no folder raw, where `bench` keeps rounds. Name the --out of a campaign.")
    with locked(root) as folder:
        rounds = _finished(folder)
        if not rounds:
            few = f", other than {len(untested)} that {UNTESTED}" if (untested := _untested(root)) else ""
            raise StoreError(f"No round below {root / 'raw'} has ended{few}, so there is nothing to store.")
        results = [_stored(folder, case, records) for case, records in rounds]
        pairs.write_all(folder)
    return results


def _finished(folder: Folder) -> list[tuple[Case, list[RunRecord]]]:
    """Every case with the records of its rounds, the first round first."""
    by_case: dict[str, list[RunRecord]] = {}
    for path, record in _ended(folder.root, counts=True):
        if folder.record_path(record.case, record.round) != path:
            raise StoreError(
                f"{path} is of {record.case.case_id}, round {record.round}, and belongs at "
                f"{folder.record_path(record.case, record.round)}. Put it there, or take it away."
            )
        records = by_case.setdefault(record.case.case_id, [])
        if records:
            store.require_place(record, records[0].case, record.round, path)
        records.append(record)
    return [(records[0].case, sorted(records, key=lambda one: one.round)) for records in by_case.values()]


def _ended(root: Path, *, counts: bool) -> Iterator[tuple[Path, RunRecord]]:
    """The record of each round that ended: of those that count, or of those beside a test without a verdict for it."""
    verdict = interference.read(root / interference.FILE)
    may_be_packed = verdict is not None and verdict.packed
    for path in _named(RECORD, root):
        if _is_aside(path.parent):
            continue
        record = store.read_record(path)
        if not interference.is_of_test(record.case) and counts == (may_be_packed or not record.neighbours):
            yield path, record


def _named(name: str, root: Path) -> list[Path]:
    """Raises StoreError where one may not look: rounds there would be passed over without a word."""
    return [path for path in json_files(root / "raw") if path.name == name]


def _untested(root: Path) -> list[Path]:
    return [path.parent for path, _ in _ended(root, counts=False)]


def _is_aside(run_dir: Path) -> bool:
    """Whether ``Folder.set_aside`` gave it its name: an attempt that another replaced."""
    return not run_dir.name.removeprefix("r").isdecimal()


def _stored(folder: Folder, case: Case, records: list[RunRecord]) -> CaseResult:
    path = folder.case_path(case)
    if path.exists():
        there = store.read_case(path)
        if [one.round for one in there.begun] == [one.round for one in records]:
            return there
        if len(there.begun) > len(records):
            raise StoreError(
                f"{path} has {counted(len(there.begun), 'round')}, below {folder.run_dir(case, 0).parent} there are "
                f"{len(records)}. Put OUT/raw back where it was: nothing stored is taken away."
            )
    result = CaseResult(case=case, rounds=tuple(records), ended_because=_why(folder.root, records))
    folder.set_aside(path, "superseded")
    store.write_case(result, path)
    return result


def _why(root: Path, records: list[RunRecord]) -> str:
    """Why there are no more rounds, in the words of ``stopping_rule`` where the case was at its end."""
    path, so_many = root / campaign_file.IDENTITY_FILE, f"stored after {counted(len(records), 'round')}"
    if not path.exists():  # rounds that suite.campaign.record_round wrote alone
        return so_many
    try:
        rule = campaign_file.rule_of(campaign_file.read(path))
    except CampaignError:  # then the campaign cannot go on, and what has ended is all there will be
        return f"{so_many}: {path.name}, which had the rule, cannot be read"
    decided = decide(records, rule)
    return f"{CUT_OFF}: {decided.reason}" if decided.go_on else decided.reason


def _unfinished(root: Path) -> list[Path]:
    """Folders of rounds that began and have no record."""
    begun = [path.parent for path in _named("case.json", root)]
    return [path for path in begun if not _is_aside(path) and not (path / RECORD).exists()]
