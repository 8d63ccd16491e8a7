"""What *Explore* says besides figures.json: metrics that only its points have, and each run's sample. Pure."""

from collections.abc import Mapping
from typing import Final

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.explore.metrics import Sample
from reports.topics.explore.model import Point, points

NAMES: Final[Mapping[str, str]] = {  # of metrics; the others are rows of figures.json in other units
    "energy": "joules_per_million_frames",
    "memory": "gpu_memory_gb",
    "start": "warm_start_s",
    "reward": "time_to_reward_s",
}
# What comparisons of two points are computed from: one value of each run.
SAMPLES: Final[Mapping[Sample, str]] = {
    "time": "iteration_time_s_of_runs",
    "energy": "joules_per_million_frames_of_runs",
    "memory": "gpu_memory_gb_of_runs",
    "start": "warm_start_s_of_runs",
    "reward": "time_to_reward_s_of_runs",
}


def explore_figures(version: Version) -> Mapping[str, Figures]:
    """Return point -> figures, and ``every configuration`` of these together."""
    found = points(version)
    if not found:
        return {}
    together = {"configurations": len(found), "tasks": len({point.task for point in found})}
    return {"every configuration": together, **{point.key: _figures(point) for point in found}}


def _figures(point: Point) -> Figures:
    known = [with_interval(name, point.figures.get(key)) for key, name in NAMES.items()]
    samples = {name: [*point.samples.get(key, ())] for key, name in SAMPLES.items()}
    return {name: value for found in known for name, value in found.items()} | samples | {"reward": point.reward}
