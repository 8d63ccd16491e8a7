"""Run rounds, a block at a time: counted rounds, profiled rounds and warm-ups share this loop.

A block of one run is trained alone. The runs of a larger block start together and are measured in turns;
those of which only the learning counts train at the same time.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Event

from suite.campaign import cases, run_log
from suite.campaign.display.progress import Reporter, RunLine
from suite.campaign.display.results import print_pair
from suite.campaign.folder import Folder, drop_checkpoints
from suite.campaign.runs import upstream
from suite.campaign.runs.keeper import TURN_S, Keeper, Seat
from suite.campaign.runs.run import Run, launch_of, machine_with, repair_kernels
from suite.campaign.schedule import blocks_to_run, known_blocks
from suite.campaign.state import Campaign
from suite.errors import Interrupted
from suite.files.paths import set_aside
from suite.files.wording import counted
from suite.launch.contract import RunControl
from suite.matrix.plan import EMPTY_CACHE
from suite.options.command_line import say
from suite.records import store
from suite.records.collect import collect
from suite.schema.observations import TurnsTaken
from suite.schema.rank_protocol import TURNS_SOCKET, TURNS_VARIABLE, LaunchResult
from suite.schema.record import Case, CaseResult, Launch, RunRecord
from suite.statistics.reduce import round_time_s


def run_planned(campaign: Campaign, folder: Folder) -> tuple[CaseResult, ...]:
    """Run every round that the plan still needs, store each case with its last round, and return what is stored."""
    items = {item.case.case_id: item for item in campaign.planned}
    blocks = ([Run.of(folder, item.case, index) for item, index in block] for block in blocks_to_run(campaign, folder))
    reporter = Reporter(campaign.console, campaign.planned, known_blocks(campaign, folder))
    for record in run_blocks(campaign, folder, reporter, blocks):
        cases.store_if_complete(campaign, folder, items[record.case.case_id])
    results = (cases.store_if_complete(campaign, folder, item) for item in campaign.planned)
    return tuple(result for result in results if result)


def run_uncounted(
    campaign: Campaign, folder: Folder, runs: Iterable[Run], *, followed_by: Sequence[Sequence[Case]] = ()
) -> Iterator[tuple[Run, RunRecord]]:
    """Execute runs that are no results, alone, and yield each with its record; ``followed_by``: blocks of the campaign.

    One that failed in an earlier command is run again only with ``--retry-failed``, and yielded as it was otherwise.
    Any other earlier one is set aside, such as a profile of other ranks.
    """
    waiting = []
    for run in runs:
        earlier = store.read_record(run.record_path) if run.record_path.exists() else None
        if earlier:
            has_failed = earlier.outcome != "completed" and earlier.profiled_ranks == run.profiled_ranks
            if has_failed and not campaign.options.rounds.retry_failed:
                yield run, earlier
                continue
            set_aside(run.run_dir, "earlier")
        waiting.append(run)
    to_come = [*([run.case] for run in waiting), *followed_by]
    reporter = Reporter(campaign.console, (*campaign.warm_ups, *campaign.planned), to_come, total=len(waiting))
    yield from zip(waiting, run_blocks(campaign, folder, reporter, ([run] for run in waiting)), strict=True)


def run_blocks(
    campaign: Campaign, folder: Folder, reporter: Reporter, blocks: Iterable[Sequence[Run]]
) -> Iterator[RunRecord]:
    """Execute the blocks one after another and yield each record. The next block is drawn after the last has ended.

    The runs of a block are measured in turns; a block of one run is measured alone. Trainings that share a GPU begin
    their iterations together by turns, also in a block of one.
    """
    for block in blocks:
        folder.require_space()
        with reporter.block([(run.case, run.round) for run in block], note=block[0].uncounted) as lines:
            records = _run_block(campaign, block, lines)
        reporter.ended(
            [
                (record, f" ({run.uncounted})" if run.uncounted else _speed(record))
                for run, record in zip(block, records, strict=True)
                if record is not None
            ]
        )
        yield from (record for record in records if record is not None)
        crowded = [[run] for run, record in zip(block, records, strict=True) if record is None]
        for (run,) in crowded:
            say(campaign.console, f"    {run.case.case_id} ran out of memory in its block, so it runs alone.")
        yield from run_blocks(campaign, folder, reporter, crowded)


def _run_block(campaign: Campaign, block: Sequence[Run], lines: Sequence[RunLine]) -> Sequence[RunRecord | None]:
    """Execute the missing parts of the runs: trainings, upstream's runs, or both. None as ``_train_together`` gives."""
    is_alone = len(block) == block[0].case.trainings_per_gpu == 1
    records: Sequence[RunRecord | None] = (
        [_train(campaign, block[0], lines[0])] if is_alone else _train_together(campaign, block, lines)
    )
    for run, record in zip(block, records, strict=True):
        may_pair = campaign.options.rounds.upstream and not run.uncounted and record is not None
        if may_pair and upstream.needs_upstream(run.case, run.run_dir):
            set_aside(upstream.folder_of(run.run_dir), "interrupted")
            pair = upstream.run_pair(launch_of(campaign, run), campaign.provided.launch)
            print_pair(campaign.console, run.case, pair)
    return records


def _train(campaign: Campaign, run: Run, line: RunLine) -> RunRecord:
    """Train alone, unless only upstream's run is missing."""
    if run.record_path.exists():
        return store.read_record_of(run.case, run.round, run.record_path)
    launch = launch_of(campaign, run)
    _set_up(campaign, run)
    record = _collected(campaign, run, launch, campaign.provided.launch(launch, RunControl(on_progress=line.update)))
    keep(run, record)
    return record


def _train_together(campaign: Campaign, runs: Sequence[Run], lines: Sequence[RunLine]) -> list[RunRecord | None]:
    """Train all runs and return their records, which are also kept; None for one that ran out of memory.

    They take turns, but for those of which only what they learn counts. Alone it may fit: its attempt is set aside. If
    one run cannot be started or ended, the others are stopped.
    """
    for run in runs:
        _set_up(campaign, run)
    seats = [Seat(case=run.case, run_dir=run.run_dir) for run in runs]
    stop = Event()
    with Keeper(seats) as keeper, ThreadPoolExecutor(len(runs)) as threads:
        futures = [
            threads.submit(_train_at, seat, keeper, campaign, run, line, stop, [other.case.case_id for other in runs])
            for run, line, seat in zip(runs, lines, seats, strict=True)
        ]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # Ctrl-C too
            stop.set()
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Interrupted)):
        raise error  # the one for which the others were stopped
    return [future.result() for future in futures]


def _train_at(
    seat: Seat, keeper: Keeper, campaign: Campaign, run: Run, line: RunLine, stop: Event, block: Sequence[str]
) -> RunRecord | None:
    """Train one run of a block; its record is written in its own last turn."""
    launch = launch_of(campaign, run)
    beside = tuple(case_id for case_id in block if case_id != run.case.case_id)
    if not run.case.only_learning:
        launch = replace(launch, env={**launch.env, TURNS_VARIABLE: TURNS_SOCKET})
    control = RunControl(on_progress=line.update, stop=stop, waits=seat.waits)
    try:
        result = campaign.provided.launch(launch, control)
        record = _collected(campaign, run, launch, result)
        if record.telemetry is not None:  # the others use memory of the GPUs too
            gpus = tuple(replace(gpu, memory_used_gb=None) for gpu in record.telemetry.gpus)
            record = replace(record, telemetry=replace(record.telemetry, gpus=gpus))
        if not run.case.only_learning:
            record = replace(record, turns=TurnsTaken(beside=beside, turns=seat.turns, turn_s=TURN_S))
        if record.outcome == "oom" and beside:
            set_aside(run.run_dir, "crowded")
            return None
        keep(run, record)
        if record.outcome != "completed":  # its own lines follow when the block has ended, which can take long
            others = f"; {counted(len(beside), 'other run')} of its block may go on" if beside else ""
            say(campaign.console, f"{run.case.case_id} run {run.round}: {record.outcome}{others}: {record.reason}")
        return record
    finally:
        keeper.ended(seat)


def _set_up(campaign: Campaign, run: Run) -> None:
    """Set an interrupted attempt aside, unless its job goes on without us, and repair the cache of kernels."""
    if not campaign.provided.is_submitted(run.run_dir):
        set_aside(run.run_dir, "interrupted")
    repair_kernels(campaign, campaign.provided.worker_of(run.case).cache_dir)


def _collected(campaign: Campaign, run: Run, launch: Launch, result: LaunchResult) -> RunRecord:
    """The record of a run that ended. Raises as ``suite.records.collect.collect`` and ``launch_of`` do."""
    worker = campaign.provided.worker_of(run.case)
    campaign.sources.require_same(worker.python)
    in_image = replace(result, image_digest=result.image_digest or campaign.provided.image_digest)
    python, *words = launch.argv  # without paths of this machine, because records are published
    argv = (Path(python).name, *(word.replace(launch.run_dir, "RUN_DIR") for word in words))
    record = collect(run.run_dir, run.case, run.round, in_image, machine_with(campaign.machine, worker), argv=argv)
    return replace(record, profiled_ranks=run.profiled_ranks)


def keep(run: Run, record: RunRecord) -> None:
    """Write the record of a run, and its line of the run log if it counts; delete what nobody needs after that."""
    stored = store.write_record(record, run.record_path)
    if not run.uncounted:
        run_log.append(run.run_dir, stored)
    if record.outcome == "completed":
        drop_checkpoints(run.run_dir / "library")
        shutil.rmtree(run.run_dir / EMPTY_CACHE, ignore_errors=True)  # its kernels serve no other run


def _speed(record: RunRecord) -> str:
    """The speed of a finished round, for its line; empty if it has no meaningful speed."""
    if record.outcome != "completed" or not record.case.has_speed:
        return ""
    time_s = round_time_s(record)
    frames = f", {record.case.frames_per_iteration / time_s:,.0f} frames/s" if record.case.has_frames else ""
    return f", {time_s:.3g} s/iteration{frames}"
