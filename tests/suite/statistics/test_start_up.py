"""Cold and warm start, from the phases and the first iteration of each round."""

from dataclasses import replace

import pytest

from suite.statistics.start_up import COLD_FACTOR, StartUp, classify, start_up
from tests.fixtures.results.generated_results import make_case, make_record


def test_a_start_is_phases_and_first_iteration_of_the_slowest_rank() -> None:
    record = make_record(make_case(world_size=2), iteration_time_s=(0.4, 0.5))
    assert start_up(record).total_s == pytest.approx(15.0)  # 4 s of imports, 6 s of a scene, 5 s of an iteration


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
    assert start_up(replace(record, ranks=ranks)).total_s == pytest.approx(1.0 + 18.0 + 1.0)


@pytest.mark.parametrize(
    ("starts", "kinds"),
    [
        ([(69.0, None), (12.3, None), (12.0, None)], ("cold", "warm", "warm")),
        ([(COLD_FACTOR * 10.0, None), (10.0, None)], ("warm", "warm")),
        ([(12.0, None)], (None,)),
        # a count of kernels goes before the time
        ([(12.0, 96)], ("cold",)),
        ([(56.2, 0), (35.8, 0), (12.0, 1)], ("warm", "warm", "cold")),
        ([(69.0, None), (12.3, 0)], ("cold", "warm")),
    ],
)
def test_cold_is_what_compiled_kernels_or_took_much_longer_than_the_shortest(
    starts: list[tuple[float, int | None]], kinds: tuple[str | None, ...]
) -> None:
    assert classify([StartUp(total_s=total_s, kernels_compiled=count) for total_s, count in starts]) == kinds


@pytest.mark.parametrize("counted", [96, 0, None])  # None: a record of before they were counted
def test_kernels_are_those_that_the_first_rank_of_a_node_counted(counted: int | None) -> None:
    record = make_record(make_case(world_size=2))
    ranks = (replace(record.ranks[0], kernels_compiled=counted), record.ranks[1])
    assert start_up(replace(record, ranks=ranks)).kernels_compiled == counted
