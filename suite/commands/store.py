"""The ``store`` command: what ``STORE_COMMAND`` says."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from suite.campaign import cases, run_log
from suite.campaign.display.results import print_rounds, print_summary, print_what_worked
from suite.campaign.folder import Folder, locked_folder, read_identity, stored_rule
from suite.campaign.runs import upstream
from suite.commands import Command
from suite.errors import CampaignError, StoreError
from suite.files.json_file import replace_json
from suite.files.wording import counted
from suite.options.command_line import results_path, say
from suite.records import store
from suite.records.folders import CAMPAIGN_FILE, PLAN_FILE, json_files, read_plan
from suite.records.worked import has_speeds
from suite.schema.rank_protocol import CONFIGURATION_FILE
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.stopping_rule import CUT_OFF, Rule, decide
from suite.statistics.twins import ratios_of

RECORD: Final = "record.json"
GONE: Final = "no run of it ended before the machine was gone"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=results_path, metavar="DIR", help="the --out of `bench`, e.g. runs/full, with its raw/"
    )


def _store(arguments: argparse.Namespace, console: Console) -> None:
    results = store_finished(arguments.folder)
    if not has_speeds(results):
        folder = Folder(root=arguments.folder)
        print_what_worked(console, results, logs=lambda case, number: folder.run_dir(case, number) / "logs")
    else:
        print_summary(console, results)
        print_rounds(console, results)
    if paths := _unfinished(arguments.folder):
        names = ", ".join(str(path.relative_to(arguments.folder)) for path in paths)
        say(console, f"Left out, as they have not ended: {names}.")
    stored = counted(len(results), "configuration"), counted(sum(len(result.rounds) for result in results), "run")
    say(console, f"Stored: {', '.join(stored)}. Their page: nox -s report -- {arguments.folder}")


def store_finished(root: Path) -> list[CaseResult]:
    """Store every case of which a round has ended, with the rounds that have; return all cases that are stored.

    Raises:
        StoreError: a folder cannot be read, no round has ended, a record is in another's place, or a stored round is
            missing.
        CampaignError: another process uses the folder, or the folder names no campaign.
    """
    try:
        has_raw = (root / "raw").is_dir()
    except OSError as error:
        raise StoreError(f"{root} cannot be read: {error.strerror}. Check the path and its permissions.") from error
    if not has_raw:
        raise StoreError(f"{root} has no folder raw, where `bench` keeps runs. Name the --out of a campaign.")
    with locked_folder(root) as folder:
        rule, unknown = _rule(root)
        finished = _finished(folder)
        if not finished:
            raise StoreError(f"No run below {root / 'raw'} has ended, so there is nothing to store.")
        records_of = {case.case_id: records for case, records in finished}
        results = [
            CaseResult(case=case, rounds=tuple(records), ended_because=_why(case, records_of, rule, unknown))
            for case, records in finished
        ]
        results = cases.write_all(folder, results)
        if plan := read_plan(root):
            never = plan["configurations"].keys() - {result.case.case_id for result in folder.stored()}
            missing = {"missing": dict.fromkeys(sorted(never), GONE)} if never else {}
            replace_json({"configurations": plan["configurations"], **missing}, root / PLAN_FILE)
        run_log.resume(root)
        upstream.write_pairs(folder)
    return results


def _finished(folder: Folder) -> list[tuple[Case, list[RunRecord]]]:
    """Every case with the records of its rounds, the first round first."""
    by_case: dict[str, list[RunRecord]] = {}
    for path in _named(RECORD, folder.root):
        if _is_aside(path.parent):
            continue
        record = store.read_record(path)
        if folder.record_path(record.case, record.round) != path:
            raise StoreError(
                f"{path} is of {record.case.case_id}, run {record.round}, and belongs at "
                f"{folder.record_path(record.case, record.round)}. Put it there, or take it away."
            )
        records = by_case.setdefault(record.case.case_id, [])
        if records:
            store.require_place(record, records[0].case, record.round, path)
        records.append(record)
    return [(records[0].case, sorted(records, key=lambda record: record.round)) for records in by_case.values()]


def _named(name: str, root: Path) -> list[Path]:
    """Return every file of this name. Raises StoreError if a folder cannot be read: its rounds would be missed."""
    return [path for path in json_files(root / "raw") if path.name == name]


def _is_aside(run_dir: Path) -> bool:
    """Whether ``set_aside`` renamed the folder, because a later attempt replaced it."""
    return not run_dir.name.removeprefix("r").isdecimal()


def _rule(root: Path) -> tuple[Rule | None, str]:
    """The rule of the campaign; None and why where there is none that can be read."""
    path = root / CAMPAIGN_FILE
    if not path.exists():  # rounds that suite.campaign.record_round wrote alone
        return None, ""
    try:
        whose = read_identity(path)
    except CampaignError:  # then the campaign cannot go on, and what has ended is all there will be
        return None, f": {path.name}, which had the rule, cannot be read"
    return stored_rule(whose), ""


def _why(case: Case, records_of: Mapping[str, Sequence[RunRecord]], rule: Rule | None, unknown: str) -> str:
    """Why there are no more rounds, in the words of ``stopping_rule`` where the case was at its end."""
    records = records_of[case.case_id]
    if rule is None:
        return f"stored after {counted(len(records), 'round')}{unknown}"
    alike = [other for other in records_of.values() if other[0].case.series == case.series]
    ratios = ratios_of(case, [other[0].case for other in alike])
    decided = decide(records, rule, ratios=ratios, of_set=[record for other in alike for record in other])
    return f"{CUT_OFF}: {decided.reason}" if decided.go_on else decided.reason


def _unfinished(root: Path) -> list[Path]:
    """Folders of rounds that began and have no record."""
    begun = [path.parent for path in _named(CONFIGURATION_FILE, root)]
    return [path for path in begun if not _is_aside(path) and not (path / RECORD).exists()]


STORE_COMMAND: Final = Command(
    summary="store the runs that a campaign finished before its machine was gone",
    description="""The `store` command: make results of the runs that a campaign finished before its machine was gone.

`bench` stores a configuration with its last run, and goes on only where the campaign began. This stores what is there,
on any machine, and notes in the plan what never ended, so that `submit` takes the rest. Where the campaign can still go
on, the same `bench` adds the missing runs to what was stored.
""",
    add_arguments=_add_options,
    run=_store,
)
