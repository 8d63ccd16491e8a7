"""Run rounds, a block at a time: counted rounds, profiled rounds and warm-ups share this loop."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from suite.campaign import cases
from suite.campaign.display.progress import Reporter, RunLine
from suite.campaign.display.tables import print_pair
from suite.campaign.folder import Folder
from suite.campaign.runs import in_turns, upstream
from suite.campaign.runs.training import Run, collected, keep, launch_of, runtime_of, set_up
from suite.campaign.schedule import blocks_to_run
from suite.campaign.state import Campaign
from suite.errors import CampaignError
from suite.files.paths import set_aside
from suite.launch.contract import RunControl
from suite.options.command_line import say
from suite.records import store
from suite.schema.record import RunRecord
from suite.statistics.reduce import round_time_s


def run_planned(campaign: Campaign, folder: Folder, reporter: Reporter) -> None:
    """Run every round that the plan still needs, and store each case with its last round."""
    items = {item.case.case_id: item for item in campaign.planned}
    blocks = (
        [Run(case=item.case, round=index, run_dir=folder.run_dir(item.case, index)) for item, index in block]
        for block in blocks_to_run(campaign, folder)
    )
    for record in run_blocks(campaign, folder, reporter, blocks):
        with disk_errors(folder.root):
            cases.store_if_complete(campaign, folder, items[record.case.case_id])


def run_uncounted(campaign: Campaign, folder: Folder, runs: Sequence[Run]) -> Iterator[tuple[Run, RunRecord]]:
    """Run rounds that are no results, one after another; what an earlier attempt left is set aside."""
    for run in runs:
        if run.record_path.exists():
            set_aside(run.run_dir, "earlier")
    reporter = Reporter(campaign.console, list(campaign.planned), [run.case for run in runs])
    yield from zip(runs, run_blocks(campaign, folder, reporter, ([run] for run in runs)), strict=True)


def run_blocks(
    campaign: Campaign, folder: Folder, reporter: Reporter, blocks: Iterable[Sequence[Run]]
) -> Iterator[RunRecord]:
    """Execute the blocks one after another and yield each record. The next block is drawn after the last has ended.

    The runs of a block are measured in turns; a block of one run is measured alone. Trainings that share a GPU begin
    their iterations together by turns, also in a block of one.

    Raises:
        CampaignError: the disk is full.
    """
    for block in blocks:
        with disk_errors(folder.root):
            folder.require_space()
            starts = [(run.case, run.round) for run in block]
            with reporter.block(starts, note=block[0].uncounted) as lines:
                records = _run_block(campaign, block, lines)
            for run, record in zip(block, records, strict=True):
                if record is not None:
                    reporter.ended(record, f" ({run.uncounted})" if run.uncounted else figures(record))
        yield from (record for record in records if record is not None)
        crowded = [[run] for run, record in zip(block, records, strict=True) if record is None]
        for (run,) in crowded:
            say(campaign.console, f"    {run.case.case_id} ran out of memory in its block, so it runs alone.")
        yield from run_blocks(campaign, folder, reporter, crowded)


def _run_block(campaign: Campaign, block: Sequence[Run], lines: Sequence[RunLine]) -> Sequence[RunRecord | None]:
    """Execute the missing parts of the runs: trainings, upstream's runs, or both. None as ``in_turns.train`` gives."""
    has_turns = len(block) > 1 or block[0].case.trainings_per_gpu > 1
    records: Sequence[RunRecord | None] = (
        in_turns.train(campaign, block, lines) if has_turns else [_train(campaign, block[0], lines[0])]
    )
    for run, record in zip(block, records, strict=True):
        is_paired = campaign.options.rounds.upstream and not run.uncounted and upstream.can_run(run.case)
        if is_paired and record is not None and record.outcome == "completed":
            set_aside(upstream.folder_of(run.run_dir), "interrupted")
            pair = upstream.run(launch_of(campaign, run), runtime_of(campaign).launch)
            print_pair(campaign.console, run.case, pair)
    return records


def _train(campaign: Campaign, run: Run, line: RunLine) -> RunRecord:
    """Train alone, unless only upstream's run is missing."""
    if run.record_path.exists():
        return store.read_record_of(run.case, run.round, run.record_path)
    launch = launch_of(campaign, run)
    set_up(campaign, run)
    record = collected(campaign, run, launch, runtime_of(campaign).launch(launch, RunControl(on_progress=line.update)))
    keep(run, record)
    return record


def figures(record: RunRecord) -> str:
    """The speed of a finished round, for its line; empty if it has no meaningful speed."""
    if record.outcome != "completed" or record.case.device == "cpu":
        return ""
    time_s = round_time_s(record)
    frames = f", {record.case.frames_per_iteration / time_s:,.0f} frames/s" if record.case.has_frames else ""
    return f", {time_s:.3g} s/iteration{frames}"


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn the error of a full disk into one that says what is kept and what to do.

    Raises:
        CampaignError: the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CampaignError(
            f"The disk of {root} is full ({error}). Free some space and run the same command again: "
            "every finished round is kept, and only the one in progress is repeated."
        ) from error
