from dataclasses import replace

import pytest

from reports.all_reduce_prediction import predict_with_all_reduce
from reports.prediction import NoPrediction, Prediction, predict
from reports.scaling_groups import ScalingGroup
from suite.schema import Scaling
from tests.generated_groups import point_of

FRAMES, ALPHA_S, MESSAGE_S = 1000, 0.002, 0.005


def steps_of(world_size: int, *, divided: bool) -> int:
    return 16 // world_size if divided else 16


def all_reduce_s(world_size: int, *, divided: bool) -> float:
    ring_s = 2 * (world_size - 1) * ALPHA_S + 2 * (world_size - 1) / world_size * MESSAGE_S
    return steps_of(world_size, divided=divided) * ring_s


def time_s(world_size: int, scaling: Scaling, *, divided: bool) -> float:
    """A tenth is serial, and a ring's all-reduce comes on top."""
    work_s = 0.1 + 0.9 / world_size if scaling == "strong" else world_size / (0.1 + 0.9 * world_size)
    return work_s + all_reduce_s(world_size, divided=divided)


def group_of(scaling: Scaling, *, divided: bool, world_sizes: tuple[int, ...] = (1, 2, 4, 8)) -> ScalingGroup:
    points = tuple(
        point_of(
            ranks,
            FRAMES * (ranks if scaling == "weak" else 1),
            dict.fromkeys(range(3), time_s(ranks, scaling, divided=divided)),
            all_reduce_s=all_reduce_s(ranks, divided=divided) if ranks > 1 else None,
            optimiser_steps=steps_of(ranks, divided=divided),
        )
        for ranks in world_sizes
    )
    return ScalingGroup(series="s", curve="c", scaling=scaling, points=points)


@pytest.mark.parametrize("divided", [True, False])
def test_a_ring_on_top_of_amdahl_is_predicted_exactly_where_amdahl_alone_is_not(divided: bool) -> None:
    group = group_of("strong", divided=divided)
    truth_fps = FRAMES / time_s(16, "strong", divided=divided)
    found = predict_with_all_reduce("amdahl", group, 16)
    assert isinstance(found, Prediction), found
    assert found.total_fps.value == pytest.approx(truth_fps)
    assert found.held_out.relative_error == pytest.approx(0)
    assert (found.held_out.world_size, found.held_out.fitted_to) == (8, (1, 2, 4))
    assert "by amdahl and a ring's all-reduce from at most 8" in found.label
    alone = predict("amdahl", group, 16)
    assert isinstance(alone, NoPrediction) or abs(alone.total_fps.value / truth_fps - 1) > 0.01


def test_a_ring_on_top_of_gustafson() -> None:
    found = predict_with_all_reduce("gustafson", group_of("weak", divided=False), 32)
    assert isinstance(found, Prediction), found
    assert found.total_fps.value == pytest.approx(32 * FRAMES / time_s(32, "weak", divided=False))


def test_what_was_not_measured_is_refused() -> None:
    group = group_of("strong", divided=False)
    silent = replace(group, points=(*group.points[:3], replace(group.points[3], all_reduce_s={})))
    odd = replace(group, points=(*group.points[:3], replace(group.points[3], optimiser_steps=5)))
    few = group_of("strong", divided=False, world_sizes=(1, 2, 4))
    reasons = {
        "not measured for 8 ranks": silent,
        "neither the same for every number of ranks nor divided by it": odd,
        "cannot tell latency from bandwidth": few,
    }
    for reason, refused in reasons.items():
        found = predict_with_all_reduce("amdahl", refused, 16)
        assert isinstance(found, NoPrediction), found
        assert reason in found.reason
    near = predict_with_all_reduce("amdahl", group, 8)
    assert isinstance(near, NoPrediction)
    assert "8 ranks were measured" in near.reason
