"""Which rounds fit together, from what they need and what a machine has."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.matrix.blocks import USABLE, Need, Room, blocks, gpu_minutes, wall_s
from suite.matrix.catalog import load_catalog
from suite.schema.record import Case, Environment, Gpu, PlannedCase

ROOM = Room(gpu_gb=100.0, host_gb=100.0, ranks=8)
SMALL = Need(gpu_gb=10.0, host_gb=10.0, ranks=1)


def cut(*needs: Need, room: Room = ROOM) -> list[int]:
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
        ([SMALL, replace(SMALL, is_known=False), SMALL, SMALL], [1, 1, 2]),
        ([], []),
    ],
)
def test_items_that_follow_each_other_fill_a_block(needs: list[Need], sizes: list[int]) -> None:
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


def test_the_catalog_says_how_much_memory_a_case_takes(make_case: Callable[..., Case]) -> None:
    catalog = load_catalog()
    case = make_case(task="Isaac-Ant", device="cuda", num_envs=1000, nproc_per_node=2)
    (entry,) = (entry for entry in catalog.tasks["Isaac-Ant"].gpu_memory if entry.stack == case.stack)
    need = Need.planned(case, catalog)
    assert need.gpu_gb == pytest.approx(entry.start_gb + entry.per_1000_envs_gb)
    assert need.ranks == 2
    assert need.is_known
    assert not Need.planned(replace(case, task="Isaac-Somebodys-Task"), catalog).is_known
    assert Need.planned(replace(case, task="Isaac-Somebodys-Task", device="cpu"), catalog).is_known


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
    assert wall_s(block) == 30.0 + 10.0 + 15.0
    assert gpu_minutes(block) == 4 * 55.0 / 60
    assert wall_s([*block, planned(None, None, 1)]) is None
    assert gpu_minutes([*block, planned(None, None, 1)]) is None
