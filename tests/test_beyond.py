"""The model on results whose parts are known exactly."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports import beyond_tables
from reports.beyond import BOUNDS, FREE, MAX_GPUS, WORTH, HeldOutCount, carry, hold_out, stop, uncuttable
from reports.collectives import Links, all_reduce_s
from reports.curves_beyond import Curve, curves_of
from reports.interconnects import read_interconnects
from reports.iteration_model import Model, NotCarried, calibrated, gradient_sizes, model_of
from reports.pages import beyond as page
from reports.result_sets import read_version
from reports.scaling_laws import ScalingGroup, scaling_groups
from suite.env_check.nccl import NcclFacts, check_nccl_all_reduce
from suite.schema import CaseResult, CheckResult, RankRecord, Scaling
from tests.generated_results import failed_result, make_case, make_record, write_results

RESULTS = Path(__file__).resolve().parents[1] / "reports" / "results" / "2026.11"
CALLS_BESIDE, CALLS_PER_STEP = 3, 2
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


def result_of(
    ranks: int,
    *,
    own_s: float,
    all_reduce_s: float,
    scaling: Scaling,
    optimiser_steps: int = 4,
    slowest: float = 0.0,
    rounds: int = 3,
) -> CaseResult:
    """Every iteration: ``own_s`` of work, the last rank ``slowest`` longer, and all-reduce."""
    case = make_case(
        "cartpole-strong",
        world_size=ranks,
        scaling=scaling,
        num_envs_global=65536 if scaling == "strong" else 64 * ranks,
        device="cuda",
        optimiser_steps=optimiser_steps,
    )

    def of_rank(rank: RankRecord) -> RankRecord:
        lag = slowest * own_s if rank.rank == ranks - 1 else 0.0
        waits_s = all_reduce_s + slowest * own_s - lag
        whole_s = own_s + lag + (waits_s if ranks > 1 else 0.0)
        count = case.iterations
        return replace(
            rank,
            samples={
                "iteration_time_s": (whole_s,) * count,
                "all_reduce_time_s": ((waits_s,) if ranks > 1 else (None,)) * count,
                "all_reduce_calls": (float(CALLS_BESIDE + CALLS_PER_STEP * optimiser_steps),) * count,
            },
        )

    records = [make_record(case, index=index) for index in range(rounds)]
    return CaseResult(
        case=case, rounds=tuple(replace(record, ranks=tuple(map(of_rank, record.ranks))) for record in records)
    )


def series(
    own_s: Callable[[int], float],
    *,
    scaling: Scaling,
    counts: Sequence[int] = (1, 2, 4, 8),
    all_reduce_time_s: float = 0.01,
    steps: Callable[[int], int] = lambda _: 4,
    slowest: float = 0.0,
) -> list[CaseResult]:
    return [
        result_of(
            ranks,
            own_s=own_s(ranks),
            all_reduce_s=all_reduce_time_s,
            scaling=scaling,
            optimiser_steps=steps(ranks),
            slowest=slowest if ranks > 1 else 0.0,
        )
        for ranks in counts
    ]


def amdahl(ranks: int) -> float:
    return 0.1 + 1.6 / ranks


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


def test_a_held_out_count_that_does_not_is_missed_and_widens_the_band() -> None:
    results = series(lambda ranks: 0.6 if ranks == 8 else 0.5, scaling="weak", all_reduce_time_s=1e-9)
    (curve,) = curves_of(results, read_interconnects())
    assert isinstance(curve.held_out, HeldOutCount)
    assert curve.held_out.relative_error == pytest.approx(0.6 / 0.5 - 1, rel=0.01)
    for one in curve.carried:
        for point in one.points:
            assert point.low <= point.total_fps * (1 - 0.198)
            assert point.high >= point.total_fps * (1 + 0.198)


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
    case = replace(training.case, workload="all_reduce")
    sized = [
        replace(rank, samples={**rank.samples, "control.all_reduce_bytes": (4096.0,) * case.iterations})
        for rank in training.rounds[0].ranks
    ]
    control = CaseResult(case=case, rounds=(replace(training.rounds[0], case=case, ranks=tuple(sized)),))
    agent = case.task, case.rl_library
    assert gradient_sizes([training]) == {}
    assert gradient_sizes([training, control]) == {agent: 4096.0}
    given = tuple(2048.0 * training.case.optimiser_steps if index == 2 else None for index in range(case.iterations))
    trained = [replace(rank, samples={**rank.samples, "all_reduce_bytes": given}) for rank in training.rounds[0].ranks]
    measured = replace(training, rounds=(replace(training.rounds[0], ranks=tuple(trained)),))
    assert gradient_sizes([measured]) == {agent: 2048.0}


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


def carried_curve(results: Sequence[CaseResult]) -> Curve:
    (curve,) = curves_of(results, read_interconnects())
    return curve


def test_the_tables_call_every_value_what_it_is() -> None:
    curve = carried_curve(series(lambda _: 0.5, scaling="weak"))
    rows = [line.split("\t") for line in beyond_tables.points(curve, label="x").text.splitlines()[1:]]
    assert [row[:2] for row in rows[:4]] == [[str(count), "measured"] for count in (1, 2, 4, 8)]
    assert [row[1] for row in rows[4:]] == ["predicted"] * 7
    assert all(" to " in cell for row in rows[4:] for cell in row[2:])
    (row,) = beyond_tables.stops([curve], label="x").text.splitlines()[1:]
    assert row.count("still pays at 1024 (predicted") == len(curve.carried)


def test_notes_name_what_a_curve_lacks() -> None:
    notes = " ".join(beyond_tables.model_notes(carried_curve(series(lambda _: 0.5, scaling="weak"))))
    assert "gradient is not stored" in notes
    few = series(lambda _: 0.5, scaling="weak", counts=(1, 2))
    notes = " ".join(beyond_tables.model_notes(carried_curve(few)))
    assert "could not be checked, because one count was measured, 1" in notes


def test_what_env_check_says_of_bandwidth_is_understood() -> None:
    facts = NcclFacts(
        python="python",
        fault=None,
        message=None,
        exit_code=0,
        signal=None,
        output="",
        wall_s=1.0,
        result={
            "torch": "2.11.0",
            "cuda": "13.0",
            "nccl": "2.28.9",
            "gpus": ["GPU", "GPU"],
            "peer_access": [[True, True], [True, True]],
            "is_sum_right": True,
            "message_bytes": 2**28,
            "times_s": [0.001],
            "bus_bandwidth_gb_s": 225.0,
        },
    )
    check = check_nccl_all_reduce(facts, num_gpus=2)
    stored = CheckResult(name=check.name, feature="nccl", verdict=check.verdict, found=check.found, fault=check.fault)
    table = beyond_tables.links([("host", stored)], read_interconnects())
    assert table is not None
    (row,) = (line.split("\t") for line in table.text.splitlines()[1:])
    assert row[:5] == ["host", "2", "256 MiB", "225 GB/s", "450 GB/s"]
    assert row[5] == "-50 %"
    assert beyond_tables.links([("host", replace(stored, found="no GPU"))], read_interconnects()) is None


def test_the_page_carries_scaling_alone_and_names_each_set_once() -> None:
    """Of results in git, which have a sweep and tuned series too."""
    version = read_version(RESULTS, name="v")
    kinds = {name: version.kind(name) for name in version.series_names}
    assert set(kinds.values()) == {"scaling", "sweep", "tuned"}
    found = page.curves(version)
    assert {kinds[curve.group.series] for _, those in found for curve in those} == {"scaling"}
    for line in page.missing(found).text.splitlines():
        names = [one.title for one in version.scaling if one.title in line]
        assert names
        assert [line.count(f"({name})") for name in names] == [1] * len(names), line


def test_the_size_of_a_gradient_may_be_known_from_another_set(tmp_path: Path) -> None:
    curve = series(lambda _: 0.5, scaling="weak", counts=(1, 2, 4))
    sized = replace(curve[1], case=replace(curve[1].case, series="other", case_id="other/any-1x2", device="cpu"))
    column = (1e6 * sized.case.optimiser_steps,) * sized.case.iterations
    ranks = [replace(rank, samples={**rank.samples, "all_reduce_bytes": column}) for rank in sized.rounds[0].ranks]
    rounds = tuple(replace(record, case=sized.case, ranks=tuple(ranks)) for record in sized.rounds)
    write_results(curve, tmp_path / "gpus")
    alone = page.curves(read_version(tmp_path, name="v"))
    write_results([replace(sized, rounds=rounds)], tmp_path / "cpu")
    (tmp_path / "report.toml").write_text('[[set]]\nfolder = "gpus"\n[[set]]\nfolder = "cpu"\nrole = "learning"\n')
    known = page.curves(read_version(tmp_path, name="v"))
    assert ["the size of its gradient is not stored" in page.missing(found).text for found in (alone, known)] == [
        True,
        False,
    ]
    last = [found[0][1][0].carried[0].points[-1].total_fps for found in (alone, known)]
    assert last[1] < last[0]
