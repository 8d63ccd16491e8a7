"""Cold and warm start, from the phases and the first iteration of each round."""

from dataclasses import replace

import pytest

from suite.statistics.start_up import COLD_FACTOR, StartUp, classify, start_up
from tests.fixtures.results.generated_results import make_case, make_record


def start(total_s: float, kernels_compiled: int | None = None) -> StartUp:
    return StartUp(
        round=0, total_s=total_s, first_iteration_s=0.0, phases_s={}, kernels_compiled=kernels_compiled
    )  # fmt: skip


def test_a_start_is_phases_and_first_iteration_of_the_slowest_rank() -> None:
    record = make_record(make_case(world_size=2), iteration_time_s=(0.4, 0.5))
    found = start_up(record)
    assert found.phases_s == {"imports": 4.0, "environment_creation": 6.0}
    assert found.first_iteration_s == pytest.approx(5.0)
    assert found.total_s == pytest.approx(15.0)


def test_what_lies_between_the_phases_belongs_to_the_start() -> None:
    """Ranks are joined and a library prepares itself outside of every phase: 10 of 20 s here; rank 1 is ready first."""
    record = make_record(make_case(world_size=2), iteration_time_s=(0.1, 0.4))
    ranks = tuple(
        replace(
            rank,
            phases_s={"imports_torch": imports_s, "environment_creation": 8.0},
            samples={**rank.samples, "start_s": tuple(first_s + x for x in rank.samples["start_s"] if x is not None)},
        )
        for rank, imports_s, first_s in zip(record.ranks, (1.0, 2.0), (18.0, 14.0), strict=True)
    )
    found = start_up(replace(record, ranks=ranks))
    assert found.total_s == pytest.approx(1.0 + 18.0 + 1.0)
    assert found.first_iteration_s == pytest.approx(4.0)


def test_cold_is_what_takes_much_longer_than_the_shortest() -> None:
    assert classify([start(69.0), start(12.3), start(12.0)]) == ("cold", "warm", "warm")
    assert classify([start(12.3), start(12.0)]) == ("warm", "warm")
    assert classify([start(COLD_FACTOR * 10.0), start(10.0)]) == ("warm", "warm")


def test_a_count_of_kernels_goes_before_the_time() -> None:
    assert classify([start(12.0, 96)]) == ("cold",)
    assert classify([start(56.2, 0), start(35.8, 0), start(12.0, 1)]) == ("warm", "warm", "cold")
    assert classify([start(69.0), start(12.3, 0)]) == ("cold", "warm")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((96, None), 96),
        ((0, None), 0),
        ((None, None), None),  # a record of before they were counted
    ],
)
def test_kernels_are_those_that_the_first_rank_of_a_node_counted(
    counts: tuple[int | None, ...], expected: int | None
) -> None:
    record = make_record(make_case(world_size=2))
    ranks = tuple(
        replace(rank, kernels_compiled=count) for rank, count in zip(record.ranks, counts, strict=True)
    )  # fmt: skip
    assert start_up(replace(record, ranks=ranks)).kernels_compiled == expected
