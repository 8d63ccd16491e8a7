from dataclasses import replace

import pytest

from reports.all_reduce import AllReduceSample, NoRing, RingAllReduce, all_reduce_times_s, fit_ring
from suite.schema import CaseResult
from tests.generated_results import make_case, make_record, make_result

ALPHA_S, BETA = 5e-6, 4e-12  # 250 GB/s


def ring_s(world_size: int, message_bytes: float) -> float:
    return 2 * (world_size - 1) * ALPHA_S + 2 * (world_size - 1) / world_size * message_bytes * BETA


def samples(world_sizes: tuple[int, ...], sizes: tuple[float, ...]) -> list[AllReduceSample]:
    return [
        AllReduceSample(world_size=ranks, message_bytes=size, time_s=ring_s(ranks, size))
        for ranks in world_sizes
        for size in sizes
    ]


@pytest.mark.parametrize(
    ("world_sizes", "sizes"), [((2, 4, 8), (1e6,)), ((8,), (1e6, 16e6, 128e6)), ((1, 2, 4), (1e6, 1e8))]
)
def test_latency_and_bandwidth_are_recovered_exactly(world_sizes: tuple[int, ...], sizes: tuple[float, ...]) -> None:
    found = fit_ring(samples(world_sizes, sizes))  # those of one rank, which reduces nothing, do not count
    assert isinstance(found, RingAllReduce)
    assert found.latency_s == pytest.approx(ALPHA_S)
    assert found.seconds_per_byte == pytest.approx(BETA)
    assert found.worst_residual == pytest.approx(0, abs=1e-9)
    assert found.time_s(16, 1e7) == pytest.approx(ring_s(16, 1e7))
    assert found.time_s(1, 1e7) == 0


def test_samples_that_cannot_tell_latency_from_bandwidth_are_refused() -> None:
    for few in (samples((2, 4), (1e6,)), samples((4,), (1e6,)) * 5, samples((1,), (1e6, 1e7, 1e8))):
        found = fit_ring(few)
        assert isinstance(found, NoRing)
        assert "cannot tell latency from bandwidth" in found.reason


def test_of_a_round_the_rank_that_waited_least_counts() -> None:
    case = make_case(world_size=2)
    record = make_record(case, iteration_time_s=[1.0, 2.0])  # all-reduce is a tenth of either
    result = CaseResult(case=case, rounds=(record, replace(record, round=1)))
    assert all_reduce_times_s(result) == pytest.approx({0: 0.1, 1: 0.1})


def test_one_rank_has_no_all_reduce() -> None:
    assert all_reduce_times_s(make_result(make_case(), 0.5)) == {}
