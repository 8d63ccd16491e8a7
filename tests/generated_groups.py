"""GENERATED scaling groups whose throughput follows a law exactly, or with noise that is known."""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from reports.scaling_groups import ScalingGroup, ScalingPoint
from suite.schema.record import Scaling

WORLD_SIZES = (1, 2, 4, 8, 16)


def point_of(world_size: int, frames_per_iteration: int, times_s: Mapping[int, float]) -> ScalingPoint:
    """One point of a campaign that ran round by round."""
    begin = datetime(2026, 11, 21, tzinfo=UTC)
    return ScalingPoint(
        world_size=world_size,
        frames_per_iteration=frames_per_iteration,
        times_s=times_s,
        started={index: begin + timedelta(hours=index, minutes=world_size) for index in times_s},
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
