"""One run of a campaign: its launch, the machine that its record names, and the kernels that it starts from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from suite.campaign.folder import Folder
from suite.campaign.state import Campaign
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.install import damage
from suite.install.worker import Worker
from suite.matrix.plan import render_launch
from suite.options.command_line import say
from suite.schema.rank_protocol import travelling
from suite.schema.record import Case, Environment, Launch


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run to execute. Its files go to ``run_dir``."""

    case: Case
    round: int
    run_dir: Path
    uncounted: str | None = None  # why it is not a result; None: it is a result
    profiled_ranks: tuple[int, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # with some it is silent for long at its end: no hang

    @classmethod
    def of(cls, folder: Folder, case: Case, round_index: int) -> Self:
        """A round of a case that counts."""
        return cls(case=case, round=round_index, run_dir=folder.run_dir(case, round_index))

    @property
    def record_path(self) -> Path:
        return self.run_dir / "record.json"


def launch_of(campaign: Campaign, run: Run) -> Launch:
    """The command of a run. Raises CampaignError if what decides its speed has changed since the campaign began."""
    worker, python_path = campaign.provided.worker_of(run.case), campaign.provided.python_path
    campaign.sources.require_same(worker.python)
    launch = render(campaign, worker, run.run_dir, run.case, run.round, python_path=python_path)
    if not run.variables:
        return launch
    patient = replace(run.case, hang_timeout_s=run.case.timeout_s)
    return replace(launch, case=patient, env={**launch.env, **run.variables})


def render(
    campaign: Campaign, worker: Worker, run_dir: Path, case: Case, round_index: int, *, python_path: str | None
) -> Launch:
    """Return the launch of a round of the campaign, whose files go to ``run_dir``."""
    shares = campaign.cores_of_gpus[: None if case.only_learning else case.gpus_per_node]
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


def machine_with(machine: Environment, worker: Worker) -> Environment:
    """The machine, described with this worker."""
    return replace(
        machine,
        worker_pins_sha256=worker.pins_sha256,
        asset_sha256=worker.asset_sha256,
        worker_packages=worker.packages,
    )


def repair_kernels(campaign: Campaign, cache_dir: Path) -> None:
    """Move damaged modules out of the kernel cache, and print it."""
    if damaged := damage.set_damaged_aside(cache_dir):
        say(
            campaign.console,
            f"Kernel cache: {counted(len(damaged), 'damaged module')} moved to {cache_dir / damage.DAMAGED} "
            f"({next(iter(damaged.values()))}). What this run needs is compiled again.",
        )
