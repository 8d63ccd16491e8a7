"""Which rounds fit together, from what they need and what a machine has."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.campaign.schedule import LEARNED, need_seen
from suite.matrix.catalog import load_catalog
from suite.matrix.resources import USABLE, Need, Room, blocks, gpu_minutes, time_of_block_s
from suite.schema.record import Case, Environment, Gpu, PlannedCase
from tests.fixtures.results.committed_results import committed_version

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
        return PlannedCase(
            case=make_case(device="cuda", nproc_per_node=gpus),
            rounds=3,
            infeasible=None,
            estimated_gpu_minutes=None,
            estimated_wall_s=round_s,
            estimated_start_s=start_s,
        )

    block = [planned(20.0, 30.0, 1), planned(30.0, 45.0, 4)]
    assert time_of_block_s(block) == 30.0 + 10.0 + 15.0
    assert gpu_minutes(block) == 4 * 55.0 / 60
    assert time_of_block_s([*block, planned(None, None, 1)]) is None
    assert gpu_minutes([*block, planned(None, None, 1)]) is None


def test_the_catalog_has_room_for_every_round_that_was_measured_alone() -> None:
    """Sets that shared their machines are left out."""
    catalog, seen = load_catalog(), 0
    for one in committed_version().sets:
        for result in one.campaign.results if one.shared_machine == "no" else ():
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
                    seen += 1
    assert seen > 100
