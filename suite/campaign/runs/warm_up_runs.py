"""Run the warm-ups of a campaign before its rounds. They are kept in ``OUT/warm-up`` and are never counted."""

from dataclasses import replace
from typing import Final

from suite.campaign import run_log
from suite.campaign.display.progress import Reporter
from suite.campaign.folder import Folder
from suite.campaign.runs import warm_up
from suite.campaign.runs.rounds import run_blocks
from suite.campaign.runs.training import Run, repair_kernels
from suite.campaign.schedule import known_rounds
from suite.campaign.state import Campaign
from suite.files.paths import set_aside
from suite.files.wording import counted
from suite.launch.contract import Runtime
from suite.options.command_line import say
from suite.records import store
from suite.schema.record import Case, PlannedCase, RunRecord

FOLDER: Final = "warm-up"  # in the campaign's folder


def run(campaign: Campaign, folder: Folder) -> None:
    """Run the warm-ups that rounds need and this machine lacks. If a warm-up fails, its rounds fail."""
    if campaign.runtime is None:
        raise AssertionError("provision comes before run_all")
    own = Folder(root=folder.root / FOLDER)
    wanted = _wanted(campaign, folder, campaign.runtime)
    if wanted:
        programs = "; ".join(warm_up.in_words(item.case) for item in wanted)
        come = "comes" if len(wanted) == 1 else "come"
        say(
            campaign.console,
            f"{counted(len(wanted), 'warm-up')} {come} first, not counted, so that no kernel is compiled while "
            f"something is timed: {programs}.",
        )
    known = [item.case for item, _ in known_rounds(campaign, folder)]
    runs = [
        Run(case=item.case, round=0, run_dir=own.run_dir(item.case, 0), uncounted="warm-up, not counted")
        for item in wanted
    ]
    failed = [] if campaign.options.rounds.retry_failed else [record for run in runs if (record := _failure(run))]
    for record in failed:
        _fail_rounds(campaign, folder, record)
    failed_ids = {record.case.case_id for record in failed}
    waiting = [run for run in runs if run.case.case_id not in failed_ids]
    for run in waiting:
        if run.record_path.exists():
            set_aside(run.run_dir, "earlier")
    cases = [*(run.case for run in waiting), *known]
    reporter = Reporter(campaign.console, [*campaign.planned, *wanted], cases, total=len(waiting))
    for record in run_blocks(campaign, folder, reporter, ([run] for run in waiting)):
        if record.outcome == "completed":
            cache_dir = campaign.runtime.worker_of(record.case).cache_dir
            warm_up.remember(cache_dir, record.case, campaign.machine)
        else:
            _fail_rounds(campaign, folder, record)


def _failure(run: Run) -> RunRecord | None:
    """The record of a warm-up that an earlier command ran and that failed."""
    if not run.record_path.exists():
        return None
    record = store.read_record(run.record_path)
    return None if record.outcome == "completed" else record


def log_folder(campaign: Campaign, case: Case, round_index: int) -> str:
    """Where the logs of a round are, or those of its failed warm-up if the round never started."""
    run_dir = Folder(root=campaign.out).run_dir(case, round_index)
    if (run_dir / "logs").is_dir():
        return str(run_dir / "logs")
    own = Folder(root=campaign.out / FOLDER)
    warm_ups = (item.case for item in campaign.warm_ups if warm_up.is_of(item.case, case))
    return next((str(own.run_dir(one, 0) / "logs") for one in warm_ups if own.is_finished(one, 0)), str(run_dir))


def _wanted(campaign: Campaign, folder: Folder, runtime: Runtime) -> list[PlannedCase]:
    if not campaign.warm_ups:
        return []
    caches = {item.case: runtime.worker_of(item.case).cache_dir for item in campaign.warm_ups}
    for cache_dir in dict.fromkeys(caches.values()):
        repair_kernels(campaign, cache_dir)  # modules that are moved away are compiled again
    cases = [item.case for item, _ in known_rounds(campaign, folder)]
    needed = {warm_up.kernels_of(case) for case in cases if warm_up.is_warmed(case)}
    return [
        item for item in campaign.warm_ups if warm_up.is_missing(caches[item.case], item.case, campaign.machine, needed)
    ]


def _fail_rounds(campaign: Campaign, folder: Folder, record: RunRecord) -> None:
    """Record the outcome and reason of this warm-up for every round that needs it; running them would repeat it."""
    rounds = [
        (item.case, index) for item, index in known_rounds(campaign, folder) if warm_up.is_of(record.case, item.case)
    ]
    for case, index in rounds:
        set_aside(folder.run_dir(case, index), "interrupted")
        failed = replace(
            record,
            case=case,
            round=index,
            reason=f"its warm-up: {record.reason}",
            wall_time_s=None,  # it never ran
            ranks=(),
            workload=None,
            telemetry=None,
            telemetry_note="the round never started",
            clocks=None,
            transport=None,
        )
        run_log.append(folder.run_dir(case, index), store.write_record(failed, folder.record_path(case, index)))
    if rounds:
        say(
            campaign.console,
            f"    {counted(len(rounds), 'run')} of {warm_up.in_words(record.case)} cannot start either. Its logs: "
            f"{Folder(root=folder.root / FOLDER).run_dir(record.case, 0) / 'logs'}",
            style="yellow",
        )
