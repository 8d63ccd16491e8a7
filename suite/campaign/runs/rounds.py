"""Run rounds one after another: counted rounds, profiled rounds and warm-ups share this loop."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from suite.campaign import cases
from suite.campaign.display.progress import Reporter, RunLine
from suite.campaign.display.tables import print_pair
from suite.campaign.folder import Folder, drop_checkpoints
from suite.campaign.runs import upstream
from suite.campaign.schedule import rounds_to_run
from suite.campaign.state import Campaign
from suite.errors import CampaignError
from suite.files.paths import ROOT
from suite.files.set_aside import set_aside
from suite.files.wording import counted
from suite.install import damaged_kernels
from suite.install.worker import Worker
from suite.launch.runtime import Runtime
from suite.matrix.plan import render_launch
from suite.options.command_line import say
from suite.records import store
from suite.records.collect import collect
from suite.records.worked import has_settled
from suite.schema.record import Case, Launch, RunRecord
from suite.statistics.reduce import round_time_s


def _as_it_is(launch: Launch) -> Launch:
    return launch


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run to execute. Its files go to ``run_dir``."""

    case: Case
    round: int
    run_dir: Path
    uncounted: str | None = None  # why it is not a result; None: it is a result
    profiled_ranks: tuple[int, ...] = ()
    adapt: Callable[[Launch], Launch] = _as_it_is  # changes its launch

    @property
    def record_path(self) -> Path:
        return self.run_dir / "record.json"


def run_planned(campaign: Campaign, folder: Folder, reporter: Reporter) -> None:
    """Run every round that the plan still needs, and store each case with its last round."""
    items = {item.case.case_id: item for item in campaign.planned}
    runs = (
        Run(case=item.case, round=index, run_dir=folder.run_dir(item.case, index))
        for item, index in rounds_to_run(campaign, folder)
    )
    for record in run_each(campaign, folder, reporter, runs):
        with disk_errors(folder.root):
            cases.store_if_complete(campaign, folder, items[record.case.case_id])


def run_each(campaign: Campaign, folder: Folder, reporter: Reporter, runs: Iterable[Run]) -> Iterator[RunRecord]:
    """Execute the runs one after another and yield each record. The next run is drawn after the last has ended.

    Raises:
        CampaignError: the disk is full.
    """
    for run in runs:
        with disk_errors(folder.root):
            folder.require_space()
            with reporter.run(run.case, run.round, note=run.uncounted) as line:
                record = _run(campaign, run, line)
            reporter.ended(record, f" ({run.uncounted})" if run.uncounted else figures(record))
        yield record


def _run(campaign: Campaign, run: Run, line: RunLine) -> RunRecord:
    """Execute the missing parts of a run: its training, upstream's run, or both."""
    runtime, case = campaign.runtime, run.case
    if runtime is None:
        raise AssertionError("provision comes before rounds")
    launch = run.adapt(render(campaign, runtime.worker, run.run_dir, case, run.round, python_path=runtime.python_path))
    if run.record_path.exists():
        record = store.read_record_of(case, run.round, run.record_path)
    else:
        record = _train(campaign, runtime, run, launch, line)
    is_paired = campaign.options.rounds.upstream and not run.uncounted and upstream.can_run(case)
    if is_paired and record.outcome == "completed":
        set_aside(upstream.folder_of(run.run_dir), "interrupted")
        print_pair(campaign.console, case, upstream.run(launch, runtime.launch))
    return record


def _train(campaign: Campaign, runtime: Runtime, run: Run, launch: Launch, line: RunLine) -> RunRecord:
    if not runtime.is_submitted(run.run_dir):
        set_aside(run.run_dir, "interrupted")
    repair_kernels(campaign, runtime.worker.cache_dir)
    result = runtime.launch(launch, on_progress=line.update)
    record = collect(run.run_dir, run.case, run.round, result, campaign.machine, argv=_without_paths(launch))
    record = replace(record, neighbours=0, profiled_ranks=run.profiled_ranks)
    store.write_record(record, run.record_path)
    if record.outcome == "completed":
        drop_checkpoints(run.run_dir / "library")
    return record


def repair_kernels(campaign: Campaign, cache_dir: Path) -> None:
    """Move damaged modules out of the kernel cache, and print it."""
    if found := damaged_kernels.set_damaged_aside(cache_dir):
        say(
            campaign.console,
            f"Kernel cache: {counted(len(found), 'damaged module')} moved to {cache_dir / damaged_kernels.DAMAGED} "
            f"({found[0].problem}). What this run needs is compiled again.",
        )


def render(
    campaign: Campaign, worker: Worker, run_dir: Path, case: Case, round_index: int, *, python_path: str | None
) -> Launch:
    """Return the launch of a round of the campaign, whose files go to ``run_dir``."""
    shares = campaign.cores_of_gpus[: case.nproc_per_node]
    return render_launch(
        case,
        round_index=round_index,
        worker_python=worker.python,
        project_root=ROOT,
        run_dir=run_dir,
        asset_root=worker.asset_root,
        cache_dir=worker.cache_dir,
        cpus=(campaign.machine.num_cpus or 1) // (case.nnodes if campaign.resources.is_one_host else 1),
        cores=tuple(core for share in shares for core in share),
        visible_gpus=os.environ.get("CUDA_VISIBLE_DEVICES"),
        python_path=python_path,
    )


def _without_paths(launch: Launch) -> tuple[str, ...]:
    """The command for the record, without paths of this machine, because records are published."""
    python, *rest = launch.argv
    return (Path(python).name, *(part.replace(launch.run_dir, "RUN_DIR") for part in rest))


def figures(record: RunRecord) -> str:
    """The speed of a finished round, for its line; empty if it has no meaningful speed."""
    if record.outcome != "completed" or record.case.device == "cpu":
        return ""
    if not has_settled(record):
        return ", did not settle"
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
