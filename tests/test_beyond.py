"""The model on results whose parts are known exactly."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.beyond import BOUNDS, FREE, MAX_GPUS, WORTH, HeldOutCount, carry, hold_out, stop, uncuttable
from reports.collectives import Links, all_reduce_s
from reports.curves_beyond import curves_of
from reports.interconnects import read_interconnects
from reports.iteration_model import Model, NotCarried, calibrated, gradient_sizes, model_of
from reports.scaling_groups import ScalingGroup, scaling_groups
from suite.schema.record import CaseResult, RankRecord
from tests.generated_curves import CALLS_BESIDE, CALLS_PER_STEP, amdahl, series
from tests.generated_results import failed_result, make_case, make_record

LINKS = Links(
    gpus_per_node=8,
    ring_within_s=1e-6,
    tree_within_s=2e-6,
    within_bytes_per_s=1e9,
    ring_between_s=1e-5,
    tree_between_s=2e-5,
    between_bytes_per_s=1e8,
)
NETWORK = dict.fromkeys(BOUNDS, LINKS)
NO_NETWORK = dict.fromkeys(BOUNDS, FREE)


def group_and_model(
    results: Sequence[CaseResult], *, gradient: float | None = None, links: Links = FREE
) -> tuple[ScalingGroup, Model]:
    (group,) = scaling_groups(results)
    by_id = {result.case.case_id: result for result in results}
    case = results[0].case
    found = model_of(group, by_id, {} if gradient is None else {(case.task, case.rl_library): gradient})
    assert isinstance(found, Model)
    return group, calibrated(found, by_id, links)


def test_a_weak_series_keeps_its_work_and_its_overhead() -> None:
    results = series(lambda _: 0.5, scaling="weak", all_reduce_time_s=0.02)
    _, model = group_and_model(results)
    assert model.own_s(MAX_GPUS) == pytest.approx(0.5)
    assert model.time_s(MAX_GPUS, NO_NETWORK) == pytest.approx(0.52)
    assert model.total_fps(1024, NO_NETWORK) == pytest.approx(1024 * results[0].case.frames_per_iteration / 0.52)


def test_a_strong_series_follows_amdahls_law_of_its_work_alone() -> None:
    _, model = group_and_model(series(amdahl, scaling="strong", all_reduce_time_s=0.02))
    assert model.own_s(1024) == pytest.approx(amdahl(1024))
    assert model.time_s(1024, NO_NETWORK) == pytest.approx(amdahl(1024) + 0.02)


def test_what_was_measured_comes_out_again_whatever_the_links() -> None:
    results = series(lambda _: 0.5, scaling="weak", slowest=0.25)
    group, model = group_and_model(results, gradient=1000.0, links=LINKS)
    assert model.overhead_s > 0
    assert model.total_fps(8, NETWORK) == pytest.approx(group.measured[-1].total_fps)


def test_the_network_takes_what_the_formulas_say() -> None:
    _, model = group_and_model(series(lambda _: 0.5, scaling="weak"), gradient=1000.0, links=LINKS)
    calls, steps = CALLS_BESIDE + CALLS_PER_STEP * 4, 4
    one_call_s = all_reduce_s(64, steps * 1000.0 / calls, LINKS)
    assert model.all_reduce_s(64, LINKS) == pytest.approx(calls * (model.overhead_s + one_call_s))
    unknown = replace(model, gradient_bytes=None)
    assert unknown.all_reduce_s(64, LINKS) == pytest.approx(calls * (model.overhead_s + all_reduce_s(64, 0, LINKS)))


def test_calls_follow_the_optimiser_steps() -> None:
    _, model = group_and_model(series(amdahl, scaling="strong", steps=lambda ranks: 64 // ranks))
    assert model.calls_per_step == pytest.approx(CALLS_PER_STEP)
    assert model.calls_beside == pytest.approx(CALLS_BESIDE)
    assert model.calls(16) == pytest.approx(CALLS_BESIDE + CALLS_PER_STEP * 4)


def test_more_ranks_wait_for_a_slower_one() -> None:
    _, model = group_and_model(series(lambda _: 0.5, scaling="weak", slowest=0.1))
    assert model.lags.slowest == pytest.approx(0.1)
    times = [model.time_s(1024, NO_NETWORK, bound) for bound in BOUNDS]
    assert times == sorted(times)
    assert times[1] == pytest.approx(model.own_s(1024) * 1.1 + 0.01)


def test_a_held_out_count_that_follows_the_model_is_hit_exactly() -> None:
    results = series(amdahl, scaling="strong")
    (group,) = scaling_groups(results)
    found = hold_out(group, {result.case.case_id: result for result in results}, {}, NO_NETWORK)
    assert isinstance(found, HeldOutCount)
    assert (found.world_size, found.fitted_to) == (8, (1, 2, 4))
    assert found.relative_error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("largest_s", [0.6, 1.25, 0.25])
def test_a_held_out_count_that_does_not_is_missed_and_widens_the_band(largest_s: float) -> None:
    """Where the model was 2.5 times as fast the band went below 0; where it was half as fast, to 1.5 times of it."""
    results = series(lambda ranks: largest_s if ranks == 8 else 0.5, scaling="weak", all_reduce_time_s=1e-9)
    (curve,) = curves_of(results, read_interconnects())
    assert isinstance(curve.held_out, HeldOutCount)
    assert curve.held_out.relative_error == pytest.approx(largest_s / 0.5 - 1, rel=0.01)
    factor = max(largest_s / 0.5, 0.5 / largest_s) - 0.01
    for one in curve.carried:
        for point in one.points:
            assert 0 < point.low <= point.total_fps / factor
            assert point.high >= point.total_fps * factor


def test_a_series_stops_paying_where_added_gpus_give_less_than_half() -> None:
    """Throughput 1, 2, 3, 3.9: from 4 on the added ones give 0.5, then 0.225."""
    (group,) = scaling_groups(series(lambda _: 0.5, scaling="weak", counts=(1, 2), all_reduce_time_s=1e-12))
    one = group.baseline.total_fps
    found = stop(group, [(4, 3 * one), (8, 3.9 * one)])
    assert found is not None
    assert (found.world_size, found.is_prediction) == (8, True)
    assert found.gain == pytest.approx(0.9 / 4)
    assert found.gain < WORTH
    assert stop(group, [(4, 3.5 * one), (8, 6 * one)]) is None


def test_a_measured_stop_is_no_prediction() -> None:
    (group,) = scaling_groups(series(lambda ranks: 1 + 1 / ranks, scaling="strong"))
    found = stop(group, [])
    assert found is not None
    assert (found.world_size, found.is_prediction) == (2, False)


def test_points_double_from_the_largest_measured_count_and_are_called_predictions() -> None:
    _, model = group_and_model(series(lambda _: 0.5, scaling="weak", counts=(1, 3, 6)))
    carried = carry(model, "free", NO_NETWORK)
    assert [point.world_size for point in carried.points] == [12, 24, 48, 96, 192, 384, 768]
    assert all(point.is_prediction for point in carried.points)
    assert all(point.low <= point.total_fps <= point.high for point in carried.points)


def test_work_that_cannot_be_cut_ends_a_series() -> None:
    weak = make_case(scaling="weak", num_envs_global=64)
    assert uncuttable(weak, 1024) is None
    strong = make_case(num_envs_global=64)  # a batch of 1024 samples in minibatches of 512
    assert uncuttable(strong, 2) is None
    assert "a rank collects 256 samples, and a minibatch has 512" in (uncuttable(strong, 4) or "")
    assert "64 environments do not divide by 128 GPUs" in (uncuttable(strong, 128) or "")
    updates = replace(strong, minibatch_rule="fixed_updates", num_steps_per_env=1, minibatch_size=16)
    assert uncuttable(updates, 16) is None
    assert "make no 4 minibatches" in (uncuttable(updates, 32) or "")


def test_gradient_sizes_come_from_controls_and_from_training() -> None:
    (training,) = series(amdahl, scaling="strong", counts=(2,))
    case = training.case
    given = tuple(2048.0 * case.optimiser_steps if index == 2 else None for index in range(case.iterations))
    ranks = [replace(rank, samples={**rank.samples, "all_reduce_bytes": given}) for rank in training.rounds[0].ranks]
    measured = replace(training, rounds=(replace(training.rounds[0], ranks=tuple(ranks)),))
    reduced = replace(case, workload="all_reduce")
    control = CaseResult(case=reduced, rounds=(replace(measured.rounds[0], case=reduced),))
    agent = case.task, case.rl_library
    assert gradient_sizes([training]) == {}
    assert gradient_sizes([training, measured]) == gradient_sizes([training, control]) == {agent: 2048.0}


def reason_of(results: Sequence[CaseResult]) -> str:
    (group,) = scaling_groups(results)
    found = model_of(group, {result.case.case_id: result for result in results}, {})
    assert isinstance(found, NotCarried)
    return found.reason


def without(result: CaseResult, column: str) -> CaseResult:
    def stripped(rank: RankRecord) -> RankRecord:
        return replace(rank, samples={name: value for name, value in rank.samples.items() if name != column})

    rounds = [replace(record, ranks=tuple(map(stripped, record.ranks))) for record in result.rounds]
    return replace(result, rounds=tuple(rounds))


def test_what_is_missing_is_said() -> None:
    whole = series(lambda _: 0.5, scaling="weak", counts=(1, 2, 4))
    assert "one count was measured, 1" in reason_of(whole[:1])
    assert "all-reduce was not timed at 4" in reason_of([*whole[:2], without(whole[2], "all_reduce_time_s")])
    assert "fewer than" in reason_of([whole[0], shortened(whole[1])])
    failed = failed_result(whole[0].case, outcome="crashed", reason="generated")
    assert "no completed round" in reason_of([failed, *whole[1:]])
    superlinear = series(lambda ranks: 1 / ranks**2, scaling="strong", all_reduce_time_s=1e-9)
    assert "superlinear" in reason_of(superlinear)
    uneven = series(amdahl, scaling="strong", steps=lambda ranks: {1: 4, 2: 8, 4: 4, 8: 5}[ranks])
    assert "optimiser steps" in reason_of(uneven)


def shortened(result: CaseResult) -> CaseResult:
    record = result.rounds[0]
    ranks = [replace(rank, samples={name: value[:3] for name, value in rank.samples.items()}) for rank in record.ranks]
    return replace(result, rounds=(replace(record, ranks=tuple(ranks)),))


def test_results_of_cpu_cores_are_not_carried() -> None:
    case = make_case()
    result = CaseResult(case=case, rounds=(make_record(case),))
    assert "CPU cores" in reason_of([result])
