"""Seven cases of one, two and four GPUs as a campaign of a simulated host with four, and what it left behind."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from suite.campaign import steps as campaign_steps
from suite.campaign.folder import Folder
from suite.campaign.packing import run as packed
from suite.campaign.packing.order import shared_out
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.records import store
from suite.schema.case_suffixes import PROBE_SUFFIX
from suite.schema.record import Case, Launch, PlannedCase, RunRecord
from suite.statistics.stopping_rule import Rule
from tests.asked_options import options_with
from tests.generated_results import GPU_HOST, make_case
from tests.simulated_host import Ran, SimulatedHost

SLOTS = shared_out(num_gpus=4, cpus=range(8), num_cpus=8)
NARROW = [make_case("cartpole-strong", num_envs_global=size, device="cuda") for size in (128, 256, 512)]
NARROW += [make_case("ant-weak", num_envs_global=size, device="cuda", scaling="weak") for size in (64, 128)]
PAIR = make_case("cartpole-strong", world_size=2, device="cuda")
WIDE = make_case("cartpole-strong", world_size=4, device="cuda")
CASES = [*NARROW[:2], WIDE, *NARROW[2:], PAIR]
BASELINE = CASES[0].case_id
ROUNDS = 6


def campaign_of(
    host: SimulatedHost, cases: Sequence[Case] = CASES, *, rounds: int = ROUNDS, pack: bool = True
) -> Campaign:
    planned = [
        PlannedCase(case=case, rounds=rounds, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=None)
        for case in cases
    ]
    return Campaign(
        options=options_with(matrix="smoke", pack=pack or None),
        console=Console(file=io.StringIO(), width=200),
        machine=replace(GPU_HOST, gpus=GPU_HOST.gpus[:4], num_cpus=8),
        device="cuda",
        resources=Resources(nnodes=1, gpus_per_node=4, cpus_per_node=8),
        planned=tuple(planned),
        slots=SLOTS,
        rule=Rule(rounds=rounds),
        runtime=host.runtime(),
    )


def run_all(campaign: Campaign, root: Path) -> None:
    """As ``suite.campaign.steps.run_all`` does it in a folder of its own."""
    folder = Folder(root=root)
    root.mkdir(exist_ok=True)
    if not packed.run(campaign, folder):
        campaign_steps._run_one_after_another(campaign, folder)


def said(campaign: Campaign) -> str:
    assert isinstance(campaign.console.file, io.StringIO)
    return campaign.console.file.getvalue()


def records(root: Path) -> list[RunRecord]:
    return [
        store.read_record(path)
        for path in sorted((root / "raw").rglob("r*/record.json"))
        if "." not in path.parent.name
    ]


def gpus(launch: Launch) -> set[str]:
    return set(launch.env["CUDA_VISIBLE_DEVICES"].split(","))


def assert_apart(ran: Sequence[Ran]) -> None:
    """No GPU and no core at two runs at a time; the share of each is the same, alone or not."""
    for each in ran:
        assert len(gpus(each.launch)) == each.launch.case.world_size
        assert len(each.launch.cpus) == 2 * each.launch.case.world_size
        assert each.launch.env["OMP_NUM_THREADS"] == "2"
        for other in each.beside:
            assert not gpus(each.launch) & gpus(other)
            assert not set(each.launch.cpus) & set(other.cpus)


def is_probe(each: Ran) -> bool:
    return each.launch.case.case_id.endswith(PROBE_SUFFIX)
