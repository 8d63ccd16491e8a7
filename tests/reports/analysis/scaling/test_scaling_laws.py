"""Laws of scaling: parameters that are known come back, and what cannot be fitted says why."""

import math

import pytest

from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.scaling.scaling_laws import Fit, Law, NoFit, fit, karp_flatt
from suite.schema.record import Scaling
from tests.fixtures.results.generated_groups import amdahl, group_of, gustafson, usl
from tests.fixtures.results.generated_results import failed_result, make_case, make_result


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


def test_single_rounds_give_a_fit_without_an_interval() -> None:
    found = fitted("amdahl", group_of(amdahl(0.2), rounds=1))
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
    assert "superlinear: 4 ranks" in refused("amdahl", group_of(lambda n: 5000 * n**1.2, world_sizes=(2, 4, 8)))


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


def test_karp_flatt_is_over_the_baseline_whatever_its_ranks() -> None:
    """Computed by hand: four ranks take 0.6 of the time of two, (0.6 - 1/2) / (1 - 1/2)."""
    (point,) = karp_flatt(group_of({2: 1000.0, 4: 1000.0 / 0.6}.__getitem__, world_sizes=(2, 4)))
    assert point.serial_fraction is not None
    assert point.serial_fraction.value == pytest.approx(0.2)


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
