"""What *Pipeline* and *Ray* say besides figures.json. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.pipeline.model import Pipeline, pipelines
from reports.topics.pipeline.ray_model import OverRay, over_ray


def pipeline_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every pipeline."""
    return {
        f"{one.name}: {each.case.case_id}": _pipeline(each)
        for one in version.scaling
        for each in pipelines(one.campaign.results)
    }


def ray_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case that collects over Ray."""
    return {
        f"{one.name}: {each.case.case_id}": _over_ray(each)
        for one in version.scaling
        for each in over_ray(one.campaign.results)
    }


def _pipeline(each: Pipeline) -> Figures:
    return {
        **with_interval("optimiser_steps_per_s", each.updates_per_s),
        **with_interval("collecting_frames_per_s", each.collecting_fps),
        **with_interval("over_in_turn", each.over_in_turn),
        "batches_between_syncs": each.batches_between_syncs,
        "staleness_updates": each.staleness,
        "overlapped": each.overlapped,
    }


def _over_ray(each: OverRay) -> Figures:
    return {
        **with_interval("here_frames_per_s", each.here_fps),
        **with_interval("over_here", each.over_here),
        "collecting": each.collecting,
    }
