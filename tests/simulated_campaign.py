"""Seven cases of one, two and four GPUs as a campaign of a simulated host with four, and what it left behind."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from suite.campaign import cases as stored_cases
from suite.campaign.display.progress import Reporter
from suite.campaign.folder import Folder
from suite.campaign.runs.rounds import run_planned
from suite.campaign.schedule import known_rounds
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.records import store
from suite.schema.record import Case, PlannedCase, RunRecord
from suite.statistics.stopping_rule import Rule
from tests.asked_options import options_with
from tests.generated_results import GPU_HOST, make_case
from tests.simulated_host import SimulatedHost

NARROW = [make_case("cartpole-strong", num_envs_global=size, device="cuda") for size in (128, 256, 512)]
NARROW += [make_case("ant-weak", num_envs_global=size, device="cuda", scaling="weak") for size in (64, 128)]
PAIR = make_case("cartpole-strong", world_size=2, device="cuda")
WIDE = make_case("cartpole-strong", world_size=4, device="cuda")
CASES = [*NARROW[:2], WIDE, *NARROW[2:], PAIR]
ROUNDS = 6


def campaign_of(host: SimulatedHost, cases: Sequence[Case] = CASES, *, rounds: int = ROUNDS) -> Campaign:
    planned = [
        PlannedCase(case=case, rounds=rounds, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=None)
        for case in cases
    ]
    return Campaign(
        options=options_with(matrix="smoke"),
        console=Console(file=io.StringIO(), width=200),
        machine=replace(GPU_HOST, gpus=GPU_HOST.gpus[:4], num_cpus=8),
        device="cuda",
        resources=Resources(nnodes=1, gpus_per_node=4, cpus_per_node=8),
        planned=tuple(planned),
        rule=Rule(rounds=rounds),
        runtime=host.runtime(),
    )


def run_all(campaign: Campaign, root: Path) -> None:
    """Run all cases like ``suite.campaign.steps.run_all``, in a folder of its own."""
    folder = Folder(root=root)
    root.mkdir(exist_ok=True)
    waiting = [item.case for item, _ in known_rounds(campaign, folder)]
    run_planned(campaign, folder, Reporter(campaign.console, list(campaign.planned), waiting))
    for item in campaign.planned:
        stored_cases.store_if_complete(campaign, folder, item)


def said(campaign: Campaign) -> str:
    assert isinstance(campaign.console.file, io.StringIO)
    return campaign.console.file.getvalue()


def records(root: Path) -> list[RunRecord]:
    return [
        store.read_record(path)
        for path in sorted((root / "raw").rglob("r*/record.json"))
        if "." not in path.parent.name
    ]
