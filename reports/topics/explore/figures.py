"""What *Explore* says besides figures.json: metrics that only its points have. Pure."""

from collections.abc import Mapping
from typing import Final

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.explore.model import Point, points

NAMES: Final[Mapping[str, str]] = {  # of metrics; the others are rows of figures.json in other units
    "energy": "joules_per_million_frames",
    "memory": "gpu_memory_gb",
    "start": "warm_start_s",
    "reward": "time_to_reward_s",
}


def explore_figures(version: Version) -> Mapping[str, Figures]:
    """Return point -> figures."""
    return {point.key: _figures(point) for point in points(version)}


def _figures(point: Point) -> Figures:
    known = [with_interval(name, point.figures.get(key)) for key, name in NAMES.items()]
    return {name: value for found in known for name, value in found.items()} | {"reward": point.reward}
