from collections.abc import Callable
from dataclasses import replace

import pytest

from reports.analysis.scaling.prediction import HeldOut, Prediction, hold_out, predict
from reports.analysis.scaling.scaling_groups import ScalingGroup
from reports.analysis.scaling.scaling_laws import Law, NoFit
from tests.fixtures.results.generated_groups import amdahl, group_of, gustafson, usl


def predicted(law: Law, group: ScalingGroup) -> Prediction:
    found = predict(law, group)
    assert isinstance(found, Prediction), found
    return found


def refused(law: Law, group: ScalingGroup) -> str:
    found = predict(law, group)
    assert isinstance(found, NoFit), found
    return found.reason


def test_data_of_the_law_are_predicted_exactly_at_twice_the_ranks() -> None:
    found = predicted("amdahl", group_of(amdahl(0.1), world_sizes=(1, 2, 4)))
    assert found.world_size == 8
    assert found.total_fps.value == pytest.approx(amdahl(0.1)(8))
    assert found.held_out.relative_error == pytest.approx(0)


@pytest.mark.parametrize(("law", "truth"), [("gustafson", gustafson(0.1)), ("usl", usl(0.05, 0.002))])
def test_other_laws_predict_too(law: Law, truth: Callable[[int], float]) -> None:
    group = group_of(truth, scaling="weak", world_sizes=(1, 2, 4, 8))
    found = predicted(law, group)
    assert found.total_fps.value == pytest.approx(truth(16))
    assert found.held_out.predicted_fps.value == pytest.approx(truth(8))


def test_the_largest_point_held_out_shows_what_the_law_does_not_know() -> None:
    group = group_of(usl(0.02, 0.004), world_sizes=(1, 2, 4, 8))
    found = hold_out("amdahl", group)
    assert isinstance(found, HeldOut)
    assert found.world_size == 8
    assert found.measured_fps.value == pytest.approx(usl(0.02, 0.004)(8))
    assert found.relative_error > 0.05  # what is limited by communication is predicted too fast


def test_the_interval_widens_with_the_noise_of_the_rounds() -> None:
    exact, noisy = (group_of(amdahl(0.1), world_sizes=(1, 2, 4), noise=noise, rounds=5) for noise in (0.0, 0.03))
    sharp, blurred = (predicted("amdahl", group).total_fps.interval for group in (exact, noisy))
    assert sharp is not None
    assert blurred is not None
    assert sharp == pytest.approx((amdahl(0.1)(8), amdahl(0.1)(8)))
    assert blurred[0] < amdahl(0.1)(8) < blurred[1]


def test_what_cannot_be_predicted_is_refused() -> None:
    group = group_of(amdahl(0.1), world_sizes=(1, 2, 4))
    assert "needs 4" in refused("usl", group)
    assert "this is strong scaling" in refused("gustafson", group)
    assert "the law misses a point" in refused("amdahl", group_of(usl(0.0, 0.05)))


def test_two_points_have_nothing_to_hold_out() -> None:
    group = group_of(amdahl(0.1), world_sizes=(1, 2))
    found = hold_out("amdahl", group)
    assert isinstance(found, NoFit)
    assert "needs 2" in found.reason
    single = replace(group, points=group.points[:1])
    assert hold_out("amdahl", single) == NoFit("one number of ranks was measured")
