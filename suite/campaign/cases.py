"""Write stored cases and the plan. A stored case follows from ``raw/`` alone."""

from collections.abc import Sequence

from suite.campaign.folder import Folder
from suite.campaign.schedule import decision, ended_records
from suite.campaign.state import Campaign
from suite.errors import StoreError
from suite.files.json_file import replace_json
from suite.files.paths import set_aside
from suite.files.wording import counted
from suite.records import store
from suite.records.folders import PLAN_FILE, read_plan
from suite.schema.record import CaseResult, PlannedCase, RunRecord
from suite.statistics.stopping_rule import CUT_OFF, is_cut_off


def store_if_complete(campaign: Campaign, folder: Folder, item: PlannedCase) -> CaseResult | None:
    """Store a case and return it if no round follows on this machine; else None."""
    records, decided = ended_records(folder, item.case), decision(campaign, folder, item.case)
    if item.infeasible and not records:
        skipped = RunRecord(
            case=item.case,
            round=0,
            outcome="skipped",
            reason=item.infeasible,
            exit_code=None,
            started_utc=None,
            wall_time_s=None,
            environment=campaign.machine,
        )
        records, because = (skipped,), None
    elif not decided.go_on:
        because = decided.reason
    elif item.infeasible:  # it goes on where it can run
        because = f"{CUT_OFF}: {decided.reason}; here it cannot go on: {item.infeasible}"
    else:
        return None
    (result,) = write_all(folder, [CaseResult(case=item.case, rounds=records, ended_because=because)])
    return result


def write_all(folder: Folder, results: Sequence[CaseResult]) -> list[CaseResult]:
    """Store cases and return what is stored of each. A case that is stored with the same rounds is left unchanged.

    Raises:
        StoreError: a stored round is not in a result, or a file cannot be read or written.
    """
    stored = [_stored_alike(folder, result) for result in results]
    new = [result for result, same in zip(results, stored, strict=True) if same is None]
    for result in new:
        set_aside(folder.case_path(result.case), "superseded")
    store.write_cases({folder.case_path(result.case): result for result in new})
    return [same or result for result, same in zip(results, stored, strict=True)]


def _stored_alike(folder: Folder, result: CaseResult) -> CaseResult | None:
    """What is stored of the case, if it has the same rounds and end; else None."""
    path = folder.case_path(result.case)
    if not path.exists():
        return None
    stored = store.read_case(path)
    rounds = [record.round for record in result.rounds if record.outcome != "skipped"]
    is_same_end = is_cut_off(stored.ended_because) == is_cut_off(result.ended_because)
    if is_same_end and [record.round for record in stored.begun] == rounds:
        return stored
    _require_rounds(folder, stored, rounds)
    return None


def require_raw(campaign: Campaign, folder: Folder) -> None:
    """Refuse, before anything runs, to continue cases whose raw records are missing.

    Raises:
        StoreError: a stored round is not in ``OUT/raw``.
    """
    for item in campaign.planned:
        path = folder.case_path(item.case)
        if path.exists():
            _require_rounds(folder, store.read_case(path), folder.finished(item.case))


def _require_rounds(folder: Folder, stored: CaseResult, rounds: Sequence[int]) -> None:
    if gone := [record.round for record in stored.begun if record.round not in rounds]:
        raise StoreError(
            f"{folder.case_path(stored.case)} has {counted(len(stored.begun), 'run')}, but "
            f"{folder.record_path(stored.case, gone[0])} is missing. Put OUT/raw back where it was, or choose another "
            "folder with --out: stored results are never removed."
        )


def note_plan(campaign: Campaign, folder: Folder) -> None:
    """Write ``OUT/plan.json``: every case of all commands and how many rounds it always gets; 0 if it cannot run here.

    ``verify`` reads it: a case that is missing among results must be explained.
    """
    earlier = read_plan(folder.root)
    planned = {item.case.case_id: 0 if item.infeasible else campaign.rule.rounds for item in campaign.planned}
    before = earlier["configurations"] if earlier else {result.case.case_id: 0 for result in folder.stored()}
    plan = {"configurations": dict(sorted({**before, **planned}.items()))}
    if plan != earlier:
        replace_json(plan, folder.root / PLAN_FILE)


def set_failures_aside(campaign: Campaign, folder: Folder) -> None:
    """Set rounds that did not complete aside with ``--retry-failed``, so that they run again; the attempt is kept.

    If a case cannot run here, its rounds stay. A case without rounds is only planned again, for its present reason.
    """
    for item in campaign.planned if campaign.options.rounds.retry_failed else ():
        ended = ended_records(folder, item.case)
        failed = [record.round for record in ended if record.outcome != "completed" and not item.infeasible]
        if failed or (item.infeasible and not ended):
            # First the case: if this process is killed in between, the failed rounds are still found.
            set_aside(folder.case_path(item.case), "superseded")
        for index in failed:
            set_aside(folder.run_dir(item.case, index), "failed")
