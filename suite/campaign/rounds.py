"""One round of a case in a campaign's folder: run it, keep what it left, store its case when it was the last."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from suite.campaign import upstream
from suite.campaign.folder import Folder, drop_checkpoints
from suite.campaign.packing import order as packing
from suite.campaign.progress import Reporter, RunLine
from suite.campaign.state import Campaign
from suite.campaign.tables import print_pair
from suite.errors import CampaignError, Interrupted
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.install import damaged_kernels
from suite.install.worker import Worker
from suite.launch.runtime import Runtime
from suite.matrix.plan import render_launch
from suite.records import store
from suite.records.collect import collect
from suite.records.worked import has_settled
from suite.schema.lane import Lane
from suite.schema.record import Case, CaseResult, Launch, PlannedCase, RunRecord
from suite.statistics.reduce import round_time_s
from suite.statistics.stopping_rule import CUT_OFF, Decision, decide


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where on its host a round runs, and beside what."""

    lane: Lane | None = None  # None: the first slots, where the host is shared out, else all of it
    stop: Event | None = None  # ends the round early
    neighbours: Callable[[], int] = lambda: 0  # the most rounds beside it so far

    def __str__(self) -> str:
        return "" if self.lane is None else f" on {self.lane}"


ALONE: Final = Place()


def is_done(campaign: Campaign, folder: Folder, case: Case, round_index: int) -> bool:
    """Say whether nothing is left to run of a round: its record is there and, when asked for, upstream's run too."""
    if not folder.is_finished(case, round_index):
        return False
    return not campaign.options.rounds.upstream or not upstream.is_missing(case, folder.run_dir(case, round_index))


def run_round(
    campaign: Campaign, folder: Folder, reporter: Reporter, case: Case, round_index: int, place: Place = ALONE
) -> RunRecord:
    """Run what is left of a round and return its record.

    Raises:
        Interrupted: the round was ended early.
    """
    runtime = campaign.runtime
    if runtime is None:
        raise AssertionError("provision comes before run_all")
    folder.require_space()
    run_dir = folder.run_dir(case, round_index)
    launch = render_in(
        campaign, runtime.worker, run_dir, case, round_index, python_path=runtime.python_path, lane=place.lane
    )
    with reporter.run(case, round_index, where=str(place)) as line:
        if folder.is_finished(case, round_index):
            record = store.read_record_of(case, round_index, folder.record_path(case, round_index))
        else:
            record = _train(campaign, runtime, folder, launch, line, place)
        if campaign.options.rounds.upstream and record.outcome == "completed" and upstream.can_run(case):
            folder.set_aside(upstream.folder_of(run_dir), "interrupted")
            pair = upstream.run(launch, partial(runtime.launch, stop=place.stop))
            if place.stop is not None and place.stop.is_set():
                raise Interrupted(f"{run_dir}: upstream's run was ended before it finished.")
            print_pair(campaign.console, case, pair)
    return record


def _train(
    campaign: Campaign, runtime: Runtime, folder: Folder, launch: Launch, line: RunLine, place: Place
) -> RunRecord:
    case, run_dir = launch.case, folder.run_dir(launch.case, launch.round)
    if not runtime.is_submitted(run_dir):
        folder.set_aside(run_dir, "interrupted")
    repair_kernels(campaign, runtime.worker.cache_dir)
    result = runtime.launch(launch, on_progress=line.update, stop=place.stop)
    record = collect(run_dir, case, launch.round, result, campaign.machine, argv=_without_paths(launch))
    record = replace(record, neighbours=place.neighbours())
    store.write_record(record, folder.record_path(case, launch.round))
    if record.outcome == "completed":
        drop_checkpoints(run_dir / "library")
    return record


def repair_kernels(campaign: Campaign, cache_dir: Path) -> None:
    """Move damaged modules away, and say so."""
    if found := damaged_kernels.set_damaged_aside(cache_dir):
        campaign.console.print(
            f"Kernel cache: {counted(len(found), 'damaged module')} moved to {cache_dir / damaged_kernels.DAMAGED} "
            f"({found[0].problem}). What this run needs is compiled again.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def render(
    campaign: Campaign, worker: Worker, folder: Folder, case: Case, round_index: int, *, python_path: str | None
) -> Launch:
    run_dir = folder.run_dir(case, round_index)
    return render_in(campaign, worker, run_dir, case, round_index, python_path=python_path)


def render_in(
    campaign: Campaign,
    worker: Worker,
    run_dir: Path,
    case: Case,
    round_index: int,
    *,
    python_path: str | None,
    lane: Lane | None = None,
) -> Launch:
    """A round of the campaign that leaves its files in ``run_dir``, on a shared host by default on the first slots."""
    if lane is None and campaign.slots:
        lane = packing.lane_of(campaign.slots, range(min(case.nproc_per_node, len(campaign.slots))))
    return render_launch(
        case,
        round_index=round_index,
        worker_python=worker.python,
        project_root=ROOT,
        run_dir=run_dir,
        asset_root=worker.asset_root,
        cache_dir=worker.cache_dir,
        cpus=(campaign.machine.num_cpus or 1) // (case.nnodes if campaign.resources.is_one_host else 1),
        lane=lane,
        visible_gpus=os.environ.get("CUDA_VISIBLE_DEVICES"),
        python_path=python_path,
    )


def _without_paths(launch: Launch) -> tuple[str, ...]:
    """The command as it is published: where this machine keeps its files is nobody's business."""
    python, *rest = launch.argv
    return (Path(python).name, *(part.replace(launch.run_dir, "RUN_DIR") for part in rest))


def figures(record: RunRecord) -> str:
    """What a line about a round that ended says of its speed; nothing where that means nothing."""
    if record.outcome != "completed" or record.case.device == "cpu":
        return ""
    if not has_settled(record):
        return ", had not settled"
    time_s = round_time_s(record)
    frames = f", {record.case.frames_per_iteration / time_s:,.0f} frames/s" if record.case.has_frames else ""
    return f", {time_s:.3g} s/iteration{frames}"


def ended_records(folder: Folder, case: Case) -> tuple[RunRecord, ...]:
    """The records of every round of a case that has ended, first round first. Raises StoreError as ``store`` does."""
    return tuple(store.read_record_of(case, index, folder.record_path(case, index)) for index in folder.finished(case))


def decision(campaign: Campaign, ended: Sequence[RunRecord]) -> Decision:
    """Whether the case with these records goes on, as ``stopping_rule.decide`` says it at this moment."""
    if ended and ended[-1].round >= len(ended):
        return Decision(go_on=True, reason="an earlier round has been set aside and is to be run again")
    return decide(ended, campaign.rule, elapsed_s=campaign.elapsed_s)


def store_if_complete(campaign: Campaign, folder: Folder, item: PlannedCase) -> CaseResult | None:
    """Return the stored result of a case, storing it first if no round is to follow here; None before that."""
    path = folder.case_path(item.case)
    stored = store.read_case(path) if path.exists() else None
    if stored and folder.is_decided(item.case) and (stored.begun or not folder.finished(item.case)):
        return stored
    records = ended_records(folder, item.case)
    if item.infeasible and not records:
        result = CaseResult(case=item.case, rounds=(_skipped(campaign, item),))
    else:
        if stored and len(stored.begun) == len(records):
            return stored
        decided = decision(campaign, records)
        if decided.go_on and not item.infeasible:
            return None
        # Where it can run again it goes on, as after a cut.
        why = (
            f"{CUT_OFF}: {decided.reason}; here it cannot go on: {item.infeasible}" if decided.go_on else decided.reason
        )
        at_first = f"; at first {counted(len(stored.begun), 'round')}" if stored and stored.begun else ""
        result = CaseResult(case=item.case, rounds=records, ended_because=why + at_first)
    folder.set_aside(path, "superseded")
    store.write_case(result, path)
    return result


def _skipped(campaign: Campaign, item: PlannedCase) -> RunRecord:
    return RunRecord(
        case=item.case,
        round=0,
        outcome="skipped",
        reason=item.infeasible,
        exit_code=None,
        started_utc=None,
        wall_time_s=None,
        environment=campaign.machine,
    )


def set_failures_aside(campaign: Campaign, folder: Folder) -> None:
    """Give the rounds that did not complete a new attempt; the old one stays beside it.

    Of a case that cannot run here they stay, and why it cannot is said anew where that is all there is.
    """
    for item in campaign.planned:
        ended = ended_records(folder, item.case)
        failed = [record.round for record in ended if record.outcome != "completed" and not item.infeasible]
        if failed or (item.infeasible and not ended):
            # First: killed in between, the case still has its failed rounds to find again.
            folder.set_aside(folder.case_path(item.case), "superseded")
        for index in failed:
            folder.set_aside(folder.run_dir(item.case, index), "failed")


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn a full disk into an error that says what is kept and what to do.

    Raises:
        CampaignError: it is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CampaignError(
            f"The disk of {root} is full ({error}). Free some space and run the same command again: "
            "every finished round is kept, only the one in progress is repeated."
        ) from error
