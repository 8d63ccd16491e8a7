import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reports.scaling_laws import (
    Fit,
    Law,
    NoFit,
    ScalingGroup,
    ScalingPoint,
    fit,
    karp_flatt,
    point_efficiency,
    point_speedup,
    scaling_groups,
)
from suite.schema import CaseResult, Scaling, Transport
from tests.generated_results import failed_result, full_results, make_case, make_record, make_result

WORLD_SIZES = (1, 2, 4, 8, 16)


def point_of(
    world_size: int,
    frames_per_iteration: int,
    times_s: Mapping[int, float],
    *,
    all_reduce_s: float | None = None,
    optimiser_steps: int = 4,
) -> ScalingPoint:
    """One point of a campaign that ran round by round."""
    begin = datetime(2026, 11, 21, tzinfo=UTC)
    return ScalingPoint(
        world_size=world_size,
        frames_per_iteration=frames_per_iteration,
        times_s=times_s,
        started={index: begin + timedelta(hours=index, minutes=world_size) for index in times_s},
        all_reduce_s={} if all_reduce_s is None else dict.fromkeys(times_s, all_reduce_s),
        optimiser_steps=optimiser_steps,
    )


def group_of(
    fps: Callable[[int], float],
    *,
    scaling: Scaling = "strong",
    world_sizes: Sequence[int] = WORLD_SIZES,
    noise: float = 0.0,
    rounds: int = 3,
    seed: int = 0,
) -> ScalingGroup:
    """Points whose throughput is ``fps`` of the number of ranks, times at most 1 +- ``noise`` in every round."""
    generator = random.Random(seed)  # noqa: S311 - noise, not secrets
    points = []
    for ranks in world_sizes:
        frames = 1000 * (ranks if scaling == "weak" else 1)
        times_s = {index: frames / fps(ranks) * (1 + generator.uniform(-noise, noise)) for index in range(rounds)}
        points.append(point_of(ranks, frames, times_s))
    return ScalingGroup(series="s", curve="c", scaling=scaling, points=tuple(points))


def amdahl(serial: float) -> Callable[[int], float]:
    return lambda n: 5000 / (serial + (1 - serial) / n)


def gustafson(serial: float) -> Callable[[int], float]:
    return lambda n: 5000 * (serial + (1 - serial) * n)


def usl(sigma: float, kappa: float) -> Callable[[int], float]:
    return lambda n: 5000 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fitted(law: Law, group: ScalingGroup) -> Fit:
    found = fit(law, group)
    assert isinstance(found, Fit), found
    return found


def refused(law: Law, group: ScalingGroup) -> str:
    found = fit(law, group)
    assert isinstance(found, NoFit), found
    return found.reason


@pytest.mark.parametrize("serial", [0.0, 0.01, 0.25, 1.0])
def test_amdahl_is_recovered_exactly(serial: float) -> None:
    found = fitted("amdahl", group_of(amdahl(serial)))
    estimate = found.parameters["serial_fraction"]
    assert estimate.value == pytest.approx(serial, abs=1e-9)
    assert estimate.interval == pytest.approx((serial, serial), abs=1e-9)
    assert found.worst_residual == pytest.approx(0, abs=1e-9)
    assert found.total_fps(64).value == pytest.approx(amdahl(serial)(64))


@pytest.mark.parametrize("serial", [0.0, 0.1, 1.0])
def test_gustafson_is_recovered_exactly(serial: float) -> None:
    found = fitted("gustafson", group_of(gustafson(serial), scaling="weak"))
    assert found.parameters["serial_fraction"].value == pytest.approx(serial, abs=1e-9)
    assert found.total_fps(64).value == pytest.approx(gustafson(serial)(64))


@pytest.mark.parametrize("scaling", ["strong", "weak"])
@pytest.mark.parametrize(
    ("sigma", "kappa", "peak"),
    [(0.0, 0.0, math.inf), (0.1, 0.0, math.inf), (0.0, 0.01, 10.0), (0.1, 0.009, 10.0), (1.0, 0.01, 1.0)],
)
def test_the_universal_scalability_law_is_recovered_exactly(
    scaling: Scaling, sigma: float, kappa: float, peak: float
) -> None:
    found = fitted("usl", group_of(usl(sigma, kappa), scaling=scaling))
    assert found.parameters["sigma"].value == pytest.approx(sigma, abs=1e-8)
    assert found.parameters["kappa"].value == pytest.approx(kappa, abs=1e-8)
    if math.isinf(peak):
        assert found.parameters["peak_world_size"].value > 1000
    else:
        assert found.parameters["peak_world_size"].value == pytest.approx(peak, abs=1e-3)


def test_the_peak_is_where_the_law_has_its_most_throughput() -> None:
    found = fitted("usl", group_of(usl(0.1, 0.009)))
    assert max(range(1, 65), key=lambda n: found.total_fps(n).value) == 10


def test_a_baseline_of_several_ranks_gives_the_same_amdahl_fraction() -> None:
    found = fitted("amdahl", group_of(amdahl(0.2), world_sizes=(2, 4, 8)))
    assert found.parameters["serial_fraction"].value == pytest.approx(0.2)


def test_intervals_of_noisy_points_cover_the_truth() -> None:
    covered = 0
    for seed in range(20):
        found = fitted("amdahl", group_of(amdahl(0.2), noise=0.03, rounds=9, seed=seed))
        interval = found.parameters["serial_fraction"].interval
        assert interval is not None
        assert 0 < interval[1] - interval[0] < 0.1
        covered += interval[0] <= 0.2 <= interval[1]
    assert covered >= 17  # 19 are expected of 20


def test_fits_are_repeatable_and_wider_with_noise() -> None:
    quiet, noisy = (group_of(amdahl(0.2), noise=noise) for noise in (0.002, 0.02))
    assert fit("amdahl", quiet) == fit("amdahl", quiet)
    narrow, wide = (fitted("amdahl", group).parameters["serial_fraction"].interval for group in (quiet, noisy))
    assert narrow is not None
    assert wide is not None
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_two_rounds_give_a_fit_without_an_interval() -> None:
    found = fitted("amdahl", group_of(amdahl(0.2), rounds=2))
    assert found.parameters["serial_fraction"].value == pytest.approx(0.2)
    assert found.parameters["serial_fraction"].interval is None
    assert found.total_fps(32).interval is None


@pytest.mark.parametrize("world_sizes", [(1,), (1, 2)])
def test_one_or_two_points_are_not_fitted(world_sizes: tuple[int, ...]) -> None:
    reason = refused("amdahl", group_of(amdahl(0.2), world_sizes=world_sizes))
    assert reason.startswith(f"measured for {', '.join(map(str, world_sizes))} ranks only, and it needs 3")
    weak = group_of(gustafson(0.2), scaling="weak", world_sizes=world_sizes)
    assert "needs 3" in refused("gustafson", weak)
    assert "needs 4" in refused("usl", weak)


def test_points_better_than_ideal_are_not_fitted() -> None:
    group = group_of(lambda n: 5000 * n**1.1)
    assert "superlinear: 2 ranks have an efficiency of 1.07" in refused("amdahl", group)
    assert "superlinear" in refused("usl", group)


def test_a_missing_baseline_is_not_replaced() -> None:
    rest = [make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (2, 4, 8)]
    (group,) = scaling_groups([failed_result(make_case(), outcome="oom", reason="out of memory"), *rest])
    assert [point.world_size for point in group.points] == [1, 2, 4, 8]
    assert "the baseline, 1 rank, has no completed round" in refused("amdahl", group)
    assert {point.reason for point in karp_flatt(group)} == {"the baseline, 1 rank, has no completed round"}


def test_a_law_is_fitted_only_to_the_scaling_it_is_about() -> None:
    assert "this is weak scaling" in refused("amdahl", group_of(gustafson(0.2), scaling="weak"))
    assert "this is strong scaling" in refused("gustafson", group_of(amdahl(0.2)))


def test_a_law_that_misses_the_points_says_so() -> None:
    assert fitted("amdahl", group_of(amdahl(0.2))).describes
    assert not fitted("amdahl", group_of(usl(0.0, 0.05))).describes


def test_karp_flatt_is_the_serial_fraction_at_every_point() -> None:
    for point in karp_flatt(group_of(amdahl(0.2))):
        assert point.serial_fraction is not None
        assert point.serial_fraction.value == pytest.approx(0.2)
        assert point.serial_fraction.interval == pytest.approx((0.2, 0.2))


def test_karp_flatt_rises_where_it_is_overhead() -> None:
    fractions = [point.serial_fraction for point in karp_flatt(group_of(usl(0.0, 0.01)))]
    values = [fraction.value for fraction in fractions if fraction is not None]
    assert len(values) == 4
    assert values == sorted(values)
    assert values[0] < values[-1] / 2


def test_karp_flatt_refuses_what_it_is_not_about() -> None:
    assert {p.serial_fraction for p in karp_flatt(group_of(gustafson(0.1), scaling="weak"))} == {None}
    (point,) = karp_flatt(group_of(lambda n: 5000 * n**1.2, world_sizes=(1, 2)))
    assert point.serial_fraction is None
    assert point.reason == "superlinear: an efficiency of 1.15"


def test_speedups_of_paired_rounds_know_that_they_shared_a_disturbance() -> None:
    # The second round was disturbed: everything took twice as long, and yet two ranks were twice as fast.
    results = [make_result(make_case(world_size=ranks), 0.8 / ranks, 1.6 / ranks, 0.8 / ranks) for ranks in (1, 2)]
    (group,) = scaling_groups(results)
    assert point_speedup(group, group.points[1]).interval == (2.0, 2.0)
    assert point_efficiency(group, group.points[1]).interval == (1.0, 1.0)
    case = make_case(world_size=2)
    other_rounds = tuple(
        make_record(case, index=index, iteration_time_s=time_s)
        for index, time_s in zip((0, 1, 3), (0.4, 0.8, 0.4), strict=True)
    )
    (unpaired,) = scaling_groups([results[0], CaseResult(case=case, rounds=other_rounds)])
    interval = point_speedup(unpaired, unpaired.points[1]).interval
    assert interval is not None
    assert interval[0] < 2 < interval[1]


def test_groups_hold_what_differs_in_ranks_only() -> None:
    groups = scaling_groups(full_results())
    assert [(group.series, group.curve) for group in groups] == [
        ("ant-weak", "rl_games"),
        ("ant-weak", "rsl_rl"),
        ("cartpole-strong", "rl_games"),
        ("cartpole-strong", "rsl_rl"),
    ]
    assert [len(group.points) for group in groups] == [4, 4, 4, 4]  # without what was skipped


def test_of_two_topologies_with_as_many_ranks_the_one_with_fewer_nodes_is_taken() -> None:
    results = [make_result(make_case(), 1.0), make_result(make_case(world_size=4, nnodes=2), 0.9)]
    results.append(make_result(make_case(world_size=4), 0.3))
    (group,) = scaling_groups(results)
    assert [dict(point.times_s) for point in group.points] == [{0: 1.0}, {0: 0.3}]


def test_emulated_nodes_are_no_scaling() -> None:
    transport = Transport(library="nccl", emulated=True)
    two_nodes = make_result(make_case(world_size=4, nnodes=2), 0.9)
    emulated = replace(two_nodes, rounds=tuple(replace(record, transport=transport) for record in two_nodes.rounds))
    (group,) = scaling_groups([make_result(make_case(), 1.0), emulated])
    assert [point.world_size for point in group.points] == [1]
    (group,) = scaling_groups([make_result(make_case(), 1.0), two_nodes])
    assert [point.world_size for point in group.points] == [1, 4]


def test_twins_of_an_a_a_run_are_no_group() -> None:
    (group,) = scaling_groups([make_result(make_case(), 1.0), make_result(make_case(variant="aa"), 1.0)])
    assert group.curve == "rsl_rl"
