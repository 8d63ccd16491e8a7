"""Which rounds start together: what they need, what a machine has, the options, and what earlier rounds took."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.campaign.folder import Folder
from suite.campaign.runs import rounds
from suite.campaign.schedule import LEARNED, blocks_of, blocks_to_run, known_blocks, need_of, need_seen, takes_turns
from suite.campaign.state import Campaign
from suite.matrix.catalog import load_catalog
from suite.matrix.resources import (
    GPU_SHARE,
    HOST_GB_OF_RANK,
    USABLE,
    Need,
    Room,
    blocks,
    gpu_minutes,
    load_of,
    time_of_block_s,
)
from suite.records import store
from suite.records.collect import collect
from suite.schema.observations import GpuTelemetry, RankTelemetry, Spread, TelemetrySummary, TurnsTaken
from suite.schema.record import Case, Device, Environment, Gpu, PlannedCase, RunRecord
from suite.statistics.twins import with_copies
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import make_case, make_record
from tests.fixtures.runs.asked_options import changed
from tests.fixtures.runs.simulated_campaign import campaign_of, planned_case, records, run_all
from tests.fixtures.runs.simulated_host import SimulatedHost

ROOM = Room(gpu_gb=100.0, host_gb=100.0, ranks=8)
SMALL = Need(gpu_gb=10.0, host_gb=10.0, ranks=1)


def cut(*needs: Need | None, room: Room = ROOM) -> list[int]:
    """The sizes of the blocks."""
    return [len(block) for block in blocks(list(enumerate(needs)), lambda item: item[1], room)]


@pytest.mark.parametrize(
    ("needs", "sizes"),
    [
        ([SMALL] * 8, [8]),
        ([SMALL] * 9, [8, 1]),  # cores
        ([replace(SMALL, gpu_gb=40.0)] * 5, [2, 2, 1]),
        ([replace(SMALL, host_gb=60.0)] * 2, [1, 1]),
        ([replace(SMALL, ranks=4)] * 3, [2, 1]),
        ([replace(SMALL, gpu_gb=400.0), SMALL, SMALL], [1, 2]),  # the first is too large for any block
        ([SMALL, None, SMALL, SMALL], [1, 1, 2]),
        ([], []),
    ],
)
def test_items_that_follow_each_other_fill_a_block(needs: list[Need | None], sizes: list[int]) -> None:
    assert cut(*needs) == sizes


def test_a_machine_has_room_for_a_part_of_its_memory(environment: Environment) -> None:
    gpus = [
        Gpu(index=index, name="H200", memory_gb=gb, compute_capability="9.0") for index, gb in ((0, 140.0), (1, 80.0))
    ]
    machine = replace(environment, gpus=tuple(gpus), memory_gb=128.0, num_cpus=16)
    assert Room.of(machine) == Room(gpu_gb=USABLE * 80.0, host_gb=USABLE * 128.0, ranks=16)
    assert Room.of(replace(machine, memory_gb=None)) is None
    assert Room.of(replace(machine, gpus=(replace(gpus[0], memory_gb=None),))) is None
    assert Room.of(replace(machine, gpus=())) == Room(gpu_gb=None, host_gb=USABLE * 128.0, ranks=16)


def test_a_block_costs_its_longest_start_and_all_iterations(make_case: Callable[..., Case]) -> None:
    def planned(start_s: float | None, round_s: float | None, gpus: int) -> PlannedCase:
        case = make_case(device="cuda", nproc_per_node=gpus)
        return replace(planned_case(case, wall_s=round_s), estimated_start_s=start_s)

    block = [planned(20.0, 30.0, 1), planned(30.0, 45.0, 4)]
    assert time_of_block_s(block) == 30.0 + 10.0 + 15.0
    assert gpu_minutes(block) == 4 * 55.0 / 60
    assert time_of_block_s([*block, planned(None, None, 1)]) is None
    assert gpu_minutes([*block, planned(None, None, 1)]) is None


def test_a_block_of_learning_takes_as_long_as_its_longest_run_or_as_the_gpu_needs_for_all() -> None:
    def planned(ranks: int, alone_s: float, device: Device = "cuda") -> PlannedCase:
        case = make_case("ant-weak", world_size=ranks, device=device, only_learning=True)
        wall_s = 20.0 + alone_s * max(1.0, load_of(case, renders=False))
        return replace(planned_case(case, wall_s=wall_s), estimated_start_s=20.0)

    assert time_of_block_s([planned(1, 100.0), planned(2, 40.0)]) == 20.0 + 100.0
    many = [planned(1, 100.0), planned(8, 50.0), planned(4, 100.0)]
    assert time_of_block_s(many) == pytest.approx(20.0 + GPU_SHARE * (100 + 400 + 400))
    assert gpu_minutes(many) == pytest.approx((20.0 + GPU_SHARE * 900) / 60)
    assert time_of_block_s([planned(16, 100.0)]) == pytest.approx(20.0 + GPU_SHARE * 1600)
    on_nodes = [replace(CASE, only_learning=True, nproc_per_node=8, nnodes=nodes) for nodes in (1, 2)]
    assert [load_of(case, renders=False) for case in on_nodes] == [GPU_SHARE * 8] * 2  # each node has a GPU
    items = [replace(planned_case(case, wall_s=100.0), estimated_start_s=20.0) for case in on_nodes]
    assert [time_of_block_s([item]) for item in items] == [100.0] * 2
    assert time_of_block_s([planned(1, 100.0, "cpu"), planned(2, 100.0, "cpu")]) == 20.0 + 100.0 + 200.0


def test_the_catalog_has_room_for_every_round_that_was_measured_alone() -> None:
    """Sets that shared their machines are left out."""
    catalog, compared = load_catalog(), 0
    for result_set in committed_version().sets:
        for result in result_set.campaign.results if result_set.shared_machine == "no" else ():
            needed = Need.planned(result.case, catalog)
            for record in result.completed:
                is_alone = "taken by another process" not in (record.environment.host_label or "")
                is_one_node = result.case.device == "cuda" and result.case.nnodes == 1
                took = need_seen(record) if is_alone and is_one_node else None
                if took is not None and took.gpu_gb is not None:
                    assert needed is not None, result.case.case_id
                    assert needed.gpu_gb is not None
                    assert took.gpu_gb / LEARNED <= needed.gpu_gb, result.case.case_id
                    assert took.host_gb / LEARNED <= needed.host_gb, result.case.case_id
                    compared += 1
    assert compared > 100


CASE = make_case("ant-weak", device="cuda", scaling="weak")


def sizes(campaign: Campaign, folder: Folder | None = None) -> list[list[str]]:
    return [[item.case.case_id for item in block] for block in blocks_of(campaign, campaign.planned, folder)]


def turning(cases: list[Case]) -> Campaign:
    return campaign_of(SimulatedHost(), cases, turns=True)


def observed(memory_gb: float, turns: TurnsTaken | None = None) -> RunRecord:
    """A round whose GPU had ``memory_gb`` in use, and its process a tenth of that."""

    def spread(value: float) -> Spread:
        return Spread(min=value, mean=value, max=value)

    telemetry = TelemetrySummary(
        window_start_unix_s=0.0,
        window_s=1.0,
        rate_hz=5.0,
        num_samples=5,
        gpus=(GpuTelemetry(index=0, memory_used_gb=spread(memory_gb)),),
        ranks=(RankTelemetry(rank=0, memory_gb=spread(memory_gb / 10)),),
    )
    return replace(make_record(CASE), telemetry=telemetry, turns=turns)


def test_without_turns_every_round_is_a_block() -> None:
    campaign = turning([CASE, replace(CASE, case_id=f"{CASE.case_id}-2")])
    assert sizes(campaign) == [[CASE.case_id, f"{CASE.case_id}-2"]]
    alone = replace(campaign, options=changed(campaign.options, turns=False))
    assert not takes_turns(alone)
    assert [len(block) for block in sizes(alone)] == [1, 1]


@pytest.mark.parametrize("options", [{"launcher": "slurm"}, {"launcher": "ssh"}, {"capacity": True}])
def test_what_cannot_take_turns_runs_alone(options: dict[str, object]) -> None:
    campaign = turning([CASE])
    assert takes_turns(campaign)
    assert not takes_turns(replace(campaign, options=changed(campaign.options, **options)))


def test_what_waits_is_known_in_the_blocks_that_will_run(tmp_path: Path) -> None:
    first, second, third = (
        replace(CASE, case_id=f"a/{name}", nproc_per_node=4) for name in ("first", "second", "third")
    )
    campaign, folder = campaign_of(SimulatedHost(), [first, second, third], rounds=2, turns=True), Folder(root=tmp_path)
    assert known_blocks(campaign, folder) == [[first, second], [third], [second, third], [first]]
    store.write_record(make_record(first), folder.record_path(first, 0))
    store.write_record(make_record(second), folder.record_path(second, 0))
    waiting = known_blocks(campaign, folder)
    assert waiting == [[third], [second, third], [first]]
    for block, expected in zip(blocks_to_run(campaign, folder), waiting, strict=True):
        assert [item.case for item, _ in block] == expected
        for item, index in block:
            store.write_record(make_record(item.case, index=index), folder.record_path(item.case, index))


def test_copies_of_the_turns_check_and_several_nodes_run_alone() -> None:
    wide = replace(CASE, case_id=f"{CASE.case_id}-wide", nnodes=2)
    other = replace(CASE, case_id=f"{CASE.case_id}-other")
    campaign = turning([*with_copies([CASE, other]), wide])
    assert sizes(campaign) == [
        [CASE.case_id, other.case_id],
        [f"{CASE.case_id}-alone"],
        [f"{other.case_id}-alone"],
        [wide.case_id],
    ]


def test_cold_starts_and_the_warm_ones_beside_them_run_alone() -> None:
    cold = replace(CASE, case_id=f"{CASE.case_id}-cold", kernel_cache="empty")
    others = [replace(CASE, case_id=f"other/{name}", series="other") for name in "ab"]
    campaign = replace(turning([cold, CASE, *others]), timed_starts=frozenset({CASE.series}))
    assert sizes(campaign) == [[cold.case_id], [CASE.case_id], ["other/a", "other/b"]]
    only_warm = replace(campaign, planned=campaign.planned[1:])  # as with --case: they are still those of the others
    assert sizes(only_warm) == [[CASE.case_id], ["other/a", "other/b"]]


def test_a_round_that_ran_alone_says_what_the_next_one_takes(tmp_path: Path) -> None:
    campaign, folder = turning([CASE]), Folder(root=tmp_path)
    planned = need_of(campaign, CASE, folder)
    assert planned is not None
    assert planned.host_gb == HOST_GB_OF_RANK
    store.write_record(observed(20.0), folder.record_path(CASE, 0))
    learned = need_of(campaign, CASE, folder)
    assert learned is not None
    assert learned.gpu_gb == pytest.approx(22.0)
    assert learned.host_gb == pytest.approx(2.2)
    beside = replace(observed(90.0, turns=TurnsTaken(beside=("x",), turns=3, turn_s=2.5)), round=1)
    store.write_record(beside, folder.record_path(CASE, 1))
    assert need_of(campaign, CASE, folder) == learned  # the memory of a block is not its own


def test_a_task_that_nobody_measured_runs_alone_once(tmp_path: Path) -> None:
    new = replace(CASE, case_id="own/task", series="own", task="Isaac-Somebodys-Task")
    other = replace(CASE, case_id="ant-weak/other")
    campaign, folder = turning([CASE, new, other]), Folder(root=tmp_path)
    assert [len(block) for block in sizes(campaign, folder)] == [1, 1, 1]
    store.write_record(replace(observed(5.0), case=new), folder.record_path(new, 0))
    assert [len(block) for block in sizes(campaign, folder)] == [3]


def test_a_run_of_learning_says_what_it_takes_if_it_was_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(*args: Any, **named: Any) -> RunRecord:
        return replace(collect(*args, **named), telemetry=observed(5.0).telemetry)

    monkeypatch.setattr(rounds, "collect", seen)
    known = replace(CASE, only_learning=True)
    new = replace(known, case_id="own/task", series="own", task="Isaac-Somebodys-Task")
    run_all(campaign_of(SimulatedHost(), [known, new], rounds=2, turns=True), tmp_path)
    has_memory = {
        (record.case.case_id, record.round): record.telemetry.gpus[0].memory_used_gb is not None
        for record in records(tmp_path)
        if record.telemetry is not None
    }
    assert has_memory == {(case.case_id, number): number == 0 for case in (known, new) for number in (0, 1)}
