"""The training of one round: its launch, the state of its folder before it starts, and the record after it ended."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from suite.campaign import run_log
from suite.campaign.folder import drop_checkpoints
from suite.campaign.state import Campaign
from suite.files.paths import ROOT, set_aside
from suite.files.wording import counted
from suite.install import damage
from suite.install.worker import Worker
from suite.launch.contract import Runtime
from suite.matrix.plan import EMPTY_CACHE, render_launch
from suite.options.command_line import say
from suite.records import store
from suite.records.collect import collect
from suite.schema.observations import TelemetrySummary, TurnsTaken
from suite.schema.rank_protocol import LaunchResult, travelling
from suite.schema.record import Case, Environment, Launch, RunRecord


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


def runtime_of(campaign: Campaign) -> Runtime:
    """The runtime of a campaign whose steps are in order."""
    if campaign.runtime is None:
        raise AssertionError("provision comes before rounds")
    return campaign.runtime


def launch_of(campaign: Campaign, run: Run) -> Launch:
    """The command of a run, with its changes.

    Raises:
        CampaignError: what decides the run's speed has changed since the campaign began.
    """
    runtime = runtime_of(campaign)
    worker = runtime.worker_of(run.case)
    campaign.sources.require_same(worker.python)
    return run.adapt(render(campaign, worker, run.run_dir, run.case, run.round, python_path=runtime.python_path))


def set_up(campaign: Campaign, run: Run) -> None:
    """Set an interrupted attempt aside, unless its job goes on without us, and repair the cache of kernels."""
    runtime = runtime_of(campaign)
    if not runtime.is_submitted(run.run_dir):
        set_aside(run.run_dir, "interrupted")
    repair_kernels(campaign, runtime.worker_of(run.case).cache_dir)


def collected(
    campaign: Campaign, run: Run, launch: Launch, result: LaunchResult, turns: TurnsTaken | None = None
) -> RunRecord:
    """The record of a run that ended. Raises as ``suite.records.collect.collect`` and ``launch_of`` do."""
    runtime = runtime_of(campaign)
    campaign.sources.require_same(runtime.worker_of(run.case).python)
    in_image = replace(result, image_digest=result.image_digest or runtime.image_digest)
    machine = machine_with(campaign.machine, runtime.worker_of(run.case))
    record = collect(run.run_dir, run.case, run.round, in_image, machine, argv=_without_paths(launch))
    if turns is not None:
        record = replace(record, telemetry=_without_memory_of_others(record.telemetry))
    return replace(record, turns=turns, profiled_ranks=run.profiled_ranks)


def machine_with(machine: Environment, worker: Worker) -> Environment:
    """The machine, described with this worker."""
    return replace(
        machine,
        worker_pins_sha256=worker.pins_sha256,
        asset_sha256=worker.asset_sha256,
        worker_packages=worker.packages,
    )


def _without_memory_of_others(seen: TelemetrySummary | None) -> TelemetrySummary | None:
    """Leave out the used memory of GPUs, which the rounds that wait have too."""
    return seen and replace(seen, gpus=tuple(replace(gpu, memory_used_gb=None) for gpu in seen.gpus))


def keep(run: Run, record: RunRecord) -> None:
    """Write the record of a run, and its line of the run log if it counts; delete what nobody needs after that."""
    stored = store.write_record(record, run.record_path)
    if not run.uncounted:
        run_log.append(run.run_dir, stored)
    if record.outcome == "completed":
        drop_checkpoints(run.run_dir / "library")
        shutil.rmtree(run.run_dir / EMPTY_CACHE, ignore_errors=True)  # its kernels serve no other run


def repair_kernels(campaign: Campaign, cache_dir: Path) -> None:
    """Move damaged modules out of the kernel cache, and print it."""
    if found := damage.set_damaged_aside(cache_dir):
        say(
            campaign.console,
            f"Kernel cache: {counted(len(found), 'damaged module')} moved to {cache_dir / damage.DAMAGED} "
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
        settings=travelling(os.environ),
    )


def _without_paths(launch: Launch) -> tuple[str, ...]:
    """The command for the record, without paths of this machine, because records are published."""
    python, *rest = launch.argv
    return (Path(python).name, *(part.replace(launch.run_dir, "RUN_DIR") for part in rest))
