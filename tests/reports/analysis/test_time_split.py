from dataclasses import replace

import pytest

from reports.analysis.rows import case_rows
from reports.analysis.time_split import inside
from suite.schema.record import CaseResult, RankRecord, RunRecord
from suite.schema.telemetry import GpuTelemetry, Spread, TelemetrySummary
from tests.fixtures.results.generated_results import failed_result, make_case, make_record, make_result


def telemetry(frames_per_joule: float, *, memory_gb: float) -> TelemetrySummary:
    spread = Spread(min=1.0, mean=memory_gb / 2, max=memory_gb)
    gpu = GpuTelemetry(index=0, memory_used_gb=spread, throttled_share=0.25)
    return TelemetrySummary(
        window_start_unix_s=0.0,
        window_s=10.0,
        rate_hz=5.0,
        num_samples=50,
        gpus=(gpu, GpuTelemetry(index=1)),
        power_w=Spread(min=100.0, mean=300.0, max=400.0),
        frames_per_joule=frames_per_joule,
        host_cpu_percent=Spread(min=10.0, mean=20.0, max=30.0),
        host_stolen_percent=Spread(min=0.0, mean=0.5, max=2.0),
        sampler_cpu_share=0.02,
    )


def with_telemetry(record: RunRecord, *, frames_per_joule: float, memory_gb: float) -> RunRecord:
    return replace(record, telemetry=telemetry(frames_per_joule, memory_gb=memory_gb))


def test_three_throughputs_count_the_slowest_rank() -> None:
    case = make_case(world_size=2)
    found = inside(CaseResult(case=case, rounds=(make_record(case, iteration_time_s=[0.5, 1.0]),)))
    assert found.fps["total"].median == pytest.approx(case.frames_per_iteration / 1.0)
    assert found.fps["step and inference"].median == pytest.approx(case.frames_per_iteration / 0.7)
    assert found.fps["step"].median == pytest.approx(case.frames_per_iteration / 0.5)


def test_the_core_probe_is_that_of_the_slowest_rank_in_marked_iterations() -> None:
    record = make_record(make_case(world_size=2, iterations=8), iteration_time_s=[0.5, 0.5])

    def probed(rank: RankRecord, time_s: float) -> RankRecord:
        marked = tuple(float(index in {2, 6}) for index in range(8))
        times_s = tuple(time_s if mark else None for mark in marked)
        return replace(rank, samples={**rank.samples, "marked": marked, "core_probe_time_s": times_s})

    ranks = tuple(probed(rank, time_s) for rank, time_s in zip(record.ranks, (1e-4, 1.2e-4), strict=True))
    found = inside(CaseResult(case=record.case, rounds=(replace(record, ranks=ranks),)))
    assert found.core_probe_us is not None
    assert found.core_probe_us.median == pytest.approx(120)
    assert inside(CaseResult(case=record.case, rounds=(record,))).core_probe_us is None


def test_a_throughput_is_the_geometric_mean_over_rounds_with_its_extremes() -> None:
    case = make_case()
    total = inside(make_result(case, 1.0, 1.0, 8.0)).fps["total"]
    frames = case.frames_per_iteration
    assert (total.low, total.median, total.high) == pytest.approx((frames / 8, frames / 2, frames))


def test_throughput_of_two_rounds_is_that_of_the_time_of_the_case() -> None:
    result = make_result(make_case(), 1.0, 2.0)
    (row,) = case_rows([result])
    assert inside(result).fps["total"].median == pytest.approx(row.total_fps)
    assert inside(result).fps["total"].median == pytest.approx(result.case.frames_per_iteration / 2**0.5)


def test_shares_add_up_to_one() -> None:
    shares = inside(make_result(make_case(world_size=2), 0.5, 0.7)).shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["all-reduce"] == pytest.approx(0.1)
    assert "physics" not in shares


def test_ratios_of_ranks_are_against_the_median_rank() -> None:
    case = make_case(world_size=2, num_envs_global=128)
    ratios = inside(CaseResult(case=case, rounds=(make_record(case, iteration_time_s=[0.9, 1.1]),))).rank_ratios
    assert [ratio.median for ratio in ratios] == pytest.approx([0.9, 1.1])
    assert inside(make_result(make_case(), 0.5)).rank_ratios == ()


def test_energy_and_memory_come_from_telemetry_where_there_is_any() -> None:
    case = make_case()
    records = [make_record(case, index=index) for index in range(3)]
    records[0] = with_telemetry(records[0], frames_per_joule=1000.0, memory_gb=8.0)
    records[1] = with_telemetry(records[1], frames_per_joule=500.0, memory_gb=6.0)
    records[2] = replace(records[2], telemetry_note="the sampler was killed")
    found = inside(CaseResult(case=case, rounds=tuple(records)))
    assert found.joules_per_million_frames is not None
    assert found.joules_per_million_frames.median == pytest.approx(1500.0)
    assert found.gpu_memory_gb is not None
    assert (found.gpu_memory_gb.low, found.gpu_memory_gb.high) == (6.0, 8.0)
    assert found.power_w is not None
    assert found.throttled_share is not None
    assert found.throttled_share.median == 0.25
    assert found.sampler_core_share is not None
    assert found.sampler_core_share.median == 0.02
    assert found.stolen_share is not None
    assert found.stolen_share.median == 0.025
    assert found.gpu_utilisation_percent is None
    assert found.without_telemetry == ("the sampler was killed",)


def test_nothing_is_known_of_a_case_that_failed() -> None:
    found = inside(failed_result(make_case(), outcome="oom", reason="out of memory"))
    assert found.fps == {}
    assert found.shares == {}
    assert found.peak_memory_gb is None
    assert found.joules_per_million_frames is None


def test_a_control_that_reduces_gradients_has_no_throughput() -> None:
    assert inside(make_result(make_case(workload="all_reduce"), 0.5)).fps == {}


def test_marked_iterations_give_the_parts_and_the_others_the_whole() -> None:
    case = make_case()
    record = make_record(case, iteration_time_s=1.0)
    marks = tuple(float(index % 2) for index in range(case.iterations))
    samples = dict(record.ranks[0].samples)
    samples["marked"] = marks
    samples["iteration_time_s"] = tuple(
        (time_s or 0) * (1.5 if mark else 1.0) for time_s, mark in zip(samples["iteration_time_s"], marks, strict=True)
    )
    samples["environment_step_time_s"] = tuple(0.6 if mark else None for mark in marks)
    marked = replace(record, ranks=(replace(record.ranks[0], samples=samples),))
    found = inside(CaseResult(case=case, rounds=(marked,)))
    assert found.fps["total"].median == pytest.approx(case.frames_per_iteration / 1.0)
    assert found.fps["step"].median == pytest.approx(case.frames_per_iteration / 0.6)
    assert found.shares["rest of steps"] == pytest.approx(0.6 / 1.5)
