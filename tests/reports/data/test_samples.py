"""Throughputs, parts of an iteration, and processes beside each other."""

from dataclasses import replace

import pytest

from reports.data.samples import core_probe_us, own_wall_s, part_shares, process_skew, throughput
from suite.schema.observations import TurnsTaken
from suite.schema.record import RankRecord
from suite.statistics.reduce import iteration_times_s
from tests.fixtures.results.generated_results import make_case, make_record


def test_three_throughputs_count_the_slowest_process() -> None:
    case = make_case(world_size=2)
    record = make_record(case, iteration_time_s=[0.5, 1.0])
    assert throughput(record, "total") == pytest.approx(case.frames_per_iteration / 1.0)
    assert throughput(record, "step and inference") == pytest.approx(case.frames_per_iteration / 0.7)
    assert throughput(record, "step") == pytest.approx(case.frames_per_iteration / 0.5)


def test_the_core_probe_is_that_of_the_slowest_process_in_marked_iterations() -> None:
    record = make_record(make_case(world_size=2, iterations=8), iteration_time_s=[0.5, 0.5])

    def probed(rank: RankRecord, time_s: float) -> RankRecord:
        marked = tuple(float(index in {2, 6}) for index in range(8))
        times_s = tuple(time_s if mark else None for mark in marked)
        return replace(rank, samples={**rank.samples, "marked": marked, "core_probe_time_s": times_s})

    ranks = tuple(probed(rank, time_s) for rank, time_s in zip(record.ranks, (1e-4, 1.2e-4), strict=True))
    assert core_probe_us(replace(record, ranks=ranks)) == pytest.approx(120)
    assert core_probe_us(record) is None


def test_shares_add_up_to_one() -> None:
    shares = part_shares(make_record(make_case(world_size=2), iteration_time_s=0.5))
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["all_reduce"] == pytest.approx(0.1)
    assert "simulate" not in shares


def test_marked_iterations_give_the_parts_and_the_others_the_whole() -> None:
    case = make_case()
    record = make_record(case, iteration_time_s=1.0)
    marks = tuple(float(index % 2) for index in range(case.iterations))
    samples = {
        **record.ranks[0].samples,
        "marked": marks,
        "iteration_time_s": tuple(1.5 if mark else 1.0 for mark in marks),
        "environment_step_time_s": tuple(0.6 if mark else None for mark in marks),
    }
    marked = replace(record, ranks=(replace(record.ranks[0], samples=samples),))
    assert throughput(marked, "total") == pytest.approx(case.frames_per_iteration / 1.0)
    assert throughput(marked, "step") == pytest.approx(case.frames_per_iteration / 0.6)
    assert part_shares(marked)["environment"] == pytest.approx(0.6 / 1.5)


@pytest.mark.parametrize(("times_s", "skew"), [([1.0, 1.0, 1.0, 1.5], 0.5), ([0.4, 0.6], 0.6 / 0.5 - 1), ([0.5], None)])
def test_skew_compares_the_slowest_with_the_median_process(times_s: list[float], skew: float | None) -> None:
    record = make_record(make_case(world_size=len(times_s)), iteration_time_s=times_s)
    assert process_skew(record) == pytest.approx(skew)


def test_a_run_in_turns_lasts_as_long_as_its_own_start_and_iterations() -> None:
    record = replace(make_record(make_case(), iteration_time_s=[0.5]), wall_time_s=500.0)
    (rank,) = record.ranks
    own_s = sum(rank.phases_s.values()) + sum(iteration_times_s(record))
    taken = TurnsTaken(beside=("another",), turns=3, turn_s=2.5)
    assert own_wall_s(replace(record, turns=taken)) == pytest.approx(own_s)
    assert own_s < 100
    assert own_wall_s(record) == 500.0
    assert own_wall_s(replace(record, turns=taken, outcome="crashed")) == 500.0
    assert own_wall_s(replace(record, turns=taken, wall_time_s=None)) is None
